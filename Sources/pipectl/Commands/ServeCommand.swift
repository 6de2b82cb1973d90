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

            With FOLDER, its pictures are the sources pictures:PATH, and the page at / shows them to this machine.

            The source is the rest of the path, percent-encoded, or b64: and its base64url. `?v=...` has no meaning here, so
            that pages can change it to make browsers load a picture again. `pipectl sign` prints signed paths; the signature
            may be the word unsigned if the setting allowUnsigned permits it, or if there are no keys and the client is on
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
            SIGHUP reads the settings' files again, and those they name (docs/running.md).
            """)

    @Argument(
        help: ArgumentHelp(
            "A folder: its pictures are the sources pictures:PATH, and the page at / shows them.", valueName: "folder"),
        completion: .directory)
    var folder: String?
    @Option(
        help: ArgumentHelp(
            "Address to listen on (default 127.0.0.1:8080); with port 0 the system chooses one; *:PORT is every address. Also unix:PATH, or fd:NUMBER for a socket that was passed.",
            valueName: "host:port"
        ))
    var listen: String?
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    /// How long to wait at shutdown for answers in progress, and then again for pending writes to the stores.
    private static let patience = Duration.seconds(10)

    func run() async throws {
        if let folder, let problem = SourceHint.problem(ofFolder: folder) { throw CommandFailure(.usage, problem) }
        if Surroundings.addressSpace == nil { Heap.limitArenas(to: max(2, RunConfiguration.processors)) }
        let trimming = Task { await Heap.returnFreePages() }
        defer { trimming.cancel() }
        let settings = read()
        let reloads = Self.reloads()
        let passed =
            settings.isSet("listen") ? [] : PassedSockets.descriptors(settings.environment, process: getpid())
        var (configuration, site) = try settings.serving(passed)
        Console.beginLog(configuration.logFormat)
        let files = try FileLimit.raised(for: configuration).apply(to: &configuration)
        for warning in AccessNotice.warnings(site, configuration) + (files.map { [$0] } ?? []) {
            Console.error(warning)
        }
        configuration.pipeline.fetch.loopEntry = site.loop.entry
        var caches = try configuration.pipelineConfiguration()
        if configuration.hasMetrics {
            site.metrics = .describingAll()
            caches.metrics = site.metrics
        }
        let pipeline = try common.pipeline(caches)
        await Self.prepareWorkers(of: pipeline)
        let libraries = await pipeline.libraries()
        for line in libraries.missing(decoding: caches.limits.formats) {
            Console.error("pipectl: warning: \(line)", .warning)
        }
        for line in HEIFNotice.lines(
            version: libraries.libheif, formats: caches.limits.formats.intersection(libraries.read),
            isTrusted: configuration.trustsHEIF)
        {
            Console.error(line, line.hasPrefix("pipectl: warning") ? .warning : .info)
        }
        let observers = RequestObservers(
            log: verbose.isOn || configuration.logLevel.includesRequests ? .console() : nil,
            accessLog: configuration.accessLog.requests, metrics: site.metrics.map { RequestMetrics($0) })
        let servers: [HTTPServer]
        do throws(HTTPServer.StartError) {
            servers = try await Self.start(
                Site(pipeline: pipeline, settings: site, now: { SystemClock.unix.seconds }), configuration, observers)
        } catch {
            await pipeline.shutdown()
            throw CommandFailure(.usage, error.message)
        }
        var reload = ServerReload(
            pipeline: pipeline, servers: servers, passed: configuration.listener.passed, site: site, settings: settings)
        for await _ in reloads { for line in reload(read) { Console.error(line.text, line.level) } }
        site.readiness.end()
        // Load balancers need time to see it. Nothing cancels this task; a second signal ends the program.
        if configuration.drainSeconds > 0 { try? await Task.sleep(for: .seconds(configuration.drainSeconds)) }
        let isFinished = await withTaskGroup(of: Bool.self) { group in
            for server in servers { group.addTask { await server.stop(patience: Self.patience) } }
            return await group.reduce(true) { $0 && $1 }
        }
        if !isFinished, !common.quiet { Console.error("pipectl: stopped before every answer was finished") }
        if !(await Patience.waits(Self.patience, for: { await pipeline.shutdown() })), !common.quiet {
            Console.error("pipectl: stopped before everything was stored")
        }
    }

    /// Starts listening: for clients, and for operators where they have an address of their own.
    private static func start(
        _ site: Site, _ configuration: RunConfiguration, _ observers: RequestObservers
    ) async throws(HTTPServer.StartError) -> [HTTPServer] {
        let isSecure = configuration.listener.tls != nil
        let server = try await HTTPServer.start(site, configuration.listener, observers: observers)
        for address in server.addresses {
            let shown = shown(address, isSecure: isSecure)
            Console.error("listening on \(shown)", .info)
            if site.hasPage, case .tcp = address {
                let what = site.hasFolders ? "see folders and try recipes" : "try recipes"
                Console.error("\(what) at \(shown)\(site.mountPoint)/", .info)
            }
        }
        guard let address = configuration.adminListen else { return [server] }
        var listener = configuration.listener
        listener.listen = address
        listener.passed = []
        listener.isAdministrative = true
        listener.connections = max(1, listener.connections / 4)
        let operators = try await HTTPServer.start(site, listener, observers: observers)
        for address in operators.addresses {
            Console.error("listening for operators on \(shown(address, isSecure: isSecure))", .info)
        }
        return [server, operators]
    }

    /// A URL, if there is one.
    private static func shown(_ address: ListenAddress, isSecure: Bool) -> String {
        if case .tcp = address { "http\(isSecure ? "s" : "")://\(address)" } else { "\(address)" }
    }

    /// Starts the render workers and logs which sandbox mechanisms are in force, since not every system offers them
    /// all.
    private static func prepareWorkers(of pipeline: ImagePipeline) async {
        do throws(PipelineError) {
            if let protection = try await pipeline.prepareWorkers() {
                let isWhole = protection.missing.isEmpty
                Console.error(
                    (isWhole ? "" : "pipectl: warning: ") + "render workers: \(protection)", isWhole ? .info : .warning)
            } else {
                Console.error(
                    "render workers: none (render.isolation is inProcess): a crash in a decoder kills the server")
            }
        } catch {
            // Originals and cached variants can still be served.
            Console.error("pipectl: rendering is unavailable: \(error.message)", .error)
        }
    }

    /// The settings as they are now.
    private func read() -> Settings {
        var settings = common.collectedSettings(flags: listen.map { [("--listen", "listen", $0)] } ?? [])
        if let folder {
            let path = absolutePath(folder).split(separator: "/").map { PercentText.segment(String($0)) }
            let url = "file:///" + path.joined(separator: "/")
            settings.add("pictures", url, to: "baseURLs", .flag("FOLDER", position: 0))
        }
        return settings
    }

    /// An element for each SIGHUP, or for several that come close together, until SIGINT or SIGTERM requests a stop.
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
