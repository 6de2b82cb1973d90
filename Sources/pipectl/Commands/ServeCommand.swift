import PipelineSupport
import ArgumentParser
import Glibc
import ImageServer
import ImageServerNIO
import Pipeline
import PipelineSupport
import Variants

struct ServeCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Serve originals and variants over HTTP.",
        discussion: """
            Paths:
              /variant/{signature}/{recipe}/{source}   a picture derived from the source
              /original/{signature}/{source}           the source as the origin sent it
              /info/{signature}/{source}               what is known about the original, as JSON
              /source/{source} /purge                  DELETE, PURGE and POST: purges, with the setting adminToken
              /health /ready /metrics                  for load balancers and operators
              /                                        a page to try recipes (setting server.playground)

            With FOLDER, its pictures are available as pictures:PATH, and the page at / shows them to clients on this machine. Without keys and
            allowUnsigned, the page opens only at the printed address with ?token=..., and not from links on other sites.

            The source is the rest of the path, percent-encoded, or b64: followed by its base64url form. The server ignores `?v=...`, so
            a page can change it to make browsers reload a picture. `pipectl sign` prints signed paths. The signature
            can be the word unsigned if the setting allowUnsigned permits it, or if there are no keys and the client is on
            this machine.

            Examples:
              pipectl serve
              pipectl serve ~/Pictures
              pipectl serve --set keysFile=keys.txt
              pipectl serve --listen 127.0.0.1:0 --config pipectl.yaml -v
              pipectl serve --set allowUnsigned=true --set 'sources.allow=["example.org"]'
              server=http://127.0.0.1:8080 source=https%3A%2F%2Fexample.org%2Fa.jpg
              curl $server/variant/unsigned/thumbnail:300/$source -o a.jpg

            SIGTERM and SIGINT stop the server after the requests in progress, for at most ten seconds; a second signal stops it at once.
            SIGHUP reloads the settings file and the files that it names (docs/running.md).
            """)

    @Argument(
        help: ArgumentHelp(
            "A folder whose pictures are served as pictures:PATH and shown on the page at /.", valueName: "folder"),
        completion: .directory)
    var folder: String?
    @Option(
        help: ArgumentHelp(
            "Address to listen on (default 127.0.0.1:8080); with port 0, the system chooses one; *:PORT listens on all addresses. Alternatively unix:PATH, or fd:NUMBER for an inherited socket.",
            valueName: "host:port"
        ))
    var listen: String?
    @Flag(
        name: .customLong("no-token"),
        help: "With FOLDER and without keys: let every user of this machine see the pictures without a token.")
    var hasNoToken = false
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        if SystemRequirements.addressSpace == nil { Heap.limitArenas(to: max(2, RunConfiguration.processors)) }
        let trimming = Task { await Heap.returnFreePages() }
        defer { trimming.cancel() }
        let reloads = Self.reloads()
        var server = try await start()
        for await _ in reloads { server.reload() }
        await server.stop(isQuiet: common.quiet)
    }

    /// Starts the server with the current settings.
    ///
    /// - Throws: `CommandFailure` or `SettingErrors` with the reason why the server cannot start.
    func start(in host: ServerHost = ServerHost()) async throws -> StartedServer {
        if let folder, let problem = SourceHint.problem(ofFolder: folder) { throw CommandFailure(.usage, problem) }
        let (console, settings) = (host.console, read(host.environment))
        let passed =
            settings.isSet("listen") ? [] : PassedSockets.descriptors(settings.environment, process: getpid())
        var (configuration, site) = try settings.serving(passed)
        if folder != nil, !hasNoToken { site.accessToken = AccessToken() }
        console.beginLog(configuration.logFormat)
        let files = try FileLimit.raised(for: configuration).apply(to: &configuration)
        for warning in AccessNotice.warnings(site, configuration) + (files.map { [$0] } ?? []) {
            console.error(warning)
        }
        configuration.pipeline.fetch.loopEntry = site.loop.entry
        var caches = try configuration.pipelineConfiguration(console)
        if configuration.hasMetrics {
            site.metrics = PrometheusMetrics()
            caches.metrics = site.metrics
        }
        let pipeline = try common.pipeline(caches)
        await Self.prepareWorkers(of: pipeline, console)
        let libraries = await pipeline.libraries()
        for line in libraries.missing(decoding: caches.rendering.limits.formats) {
            console.error("pipectl: warning: \(line)", .warning)
        }
        for line in HEIFNotice.lines(
            version: libraries.libheif, formats: caches.rendering.limits.formats.intersection(libraries.read),
            isTrusted: configuration.trustsHEIF)
        {
            console.error(line, line.hasPrefix("pipectl: warning") ? .warning : .info)
        }
        let observers = RequestObservers(
            log: verbose.isOn || configuration.logLevel.includesRequests ? .console(console) : nil,
            accessLog: configuration.accessLog.requests(console), metrics: site.metrics.map { RequestMetrics($0) })
        let servers: [HTTPServer]
        do {
            servers = try await Self.listen(
                try Site(pipeline: pipeline, settings: site, now: { SystemClock.unix.seconds }), configuration,
                observers, host)
        } catch {
            await pipeline.shutdown()
            throw CommandFailure(.usage, "\(error)")
        }
        return StartedServer(
            changes: ServerReload(
                pipeline: pipeline, servers: servers, passed: configuration.listener.passed, site: site,
                settings: settings),
            drainSeconds: configuration.drainSeconds, console: console, read: { read(host.environment) })
    }

    /// Starts listening for clients and, if they have a separate address, for operators.
    private static func listen(
        _ site: Site, _ configuration: RunConfiguration, _ observers: RequestObservers, _ host: ServerHost
    ) async throws(HTTPServer.StartError) -> [HTTPServer] {
        let console = host.console
        let server = try await HTTPServer.start(
            site, configuration.listener, observers: observers, sharesLoops: host.sharesLoops)
        for address in server.addresses {
            let shown = shown(address)
            console.error("listening on \(shown)", .info)
            let query = site.accessTokenInForce.map { "?token=" + $0.text }
            if site.hasPage || query != nil, case .tcp = address {
                let what =
                    !site.hasPage
                    ? "the URL with the access token is"
                    : site.hasFolders ? "see folders and try recipes at" : "try recipes at"
                let address = "\(shown)\(site.mountPoint)/\(query ?? "")"
                console.writeMessage(LogLine(level: .info, message: "\(what) \(address)", showsToken: true))
            }
        }
        guard let address = configuration.adminListen else { return [server] }
        var listener = configuration.listener
        listener.listen = address
        listener.passed = []
        listener.isAdministrative = true
        listener.connections = max(1, listener.connections / 4)
        let operators = try await HTTPServer.start(site, listener, observers: observers, sharesLoops: host.sharesLoops)
        for address in operators.addresses {
            console.error("listening for operators on \(shown(address))", .info)
        }
        return [server, operators]
    }

    /// Returns the URL of a TCP address. Returns other addresses unchanged.
    private static func shown(_ address: ListenAddress) -> String {
        if case .tcp = address { "http://\(address)" } else { "\(address)" }
    }

    /// Starts the render workers and logs which sandbox restrictions are active, since not every system supports all of
    /// them.
    private static func prepareWorkers(of pipeline: ImagePipeline, _ console: Console) async {
        do throws(PipelineError) {
            if let missing = try await pipeline.prepareWorkers(), let protection = pipeline.workerProtection {
                let isWhole = missing.isEmpty
                console.error(
                    (isWhole ? "" : "pipectl: warning: ") + "render workers: \(protection)", isWhole ? .info : .warning)
            } else {
                console.error(
                    "render workers: none, because render.isolation is inProcess; a crash in a decoder terminates the server"
                )
            }
        } catch {
            // Originals and cached variants can still be served.
            console.error(
                "pipectl: pictures cannot be rendered (\(error.message)); only originals and cached variants are served",
                .error)
        }
    }

    /// Reads the current settings.
    private func read(_ environment: [String: String]) -> Settings {
        var settings = common.collectedSettings(
            flags: listen.map { [("--listen", "listen", $0)] } ?? [], environment: environment)
        if let folder {
            let path = absolutePath(folder).split(separator: "/").map { PercentText.segment(String($0)) }
            let url = "file:///" + path.joined(separator: "/")
            settings.add("pictures", url, to: "baseURLs", .flag("FOLDER", position: 0))
        }
        return settings
    }

    /// Returns a sequence with one element per SIGHUP, until SIGINT or SIGTERM requests a stop. Signals in quick
    /// succession may be combined.
    private static func reloads() -> AsyncStream<Void> {
        let (requests, request) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
        Interruption.onReload { request.yield() }
        Interruption.onRequest {
            Interruption.onReload(nil)
            request.finish()
        }
        return requests
    }
}
