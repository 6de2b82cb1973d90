import ArgumentParser
import HTTPCaching
import ImageServerNIO
import Pipeline

struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Ask a server whether it works, for probes of containers and services without curl.",
        discussion: """
            Without a URL it asks the server on this machine: where the setting `listen` says. A URL
            may also be unix:PATH.
            /health says whether the server answers at all, /ready (--ready) also whether it is about to stop.

            Exit codes: 0 it answers 200, 1 it answers otherwise or not at all, 2 usage.

            Examples:
              pipectl health
              pipectl health --ready --config /etc/pipectl/pipectl.yaml
              pipectl health http://images.example:8080/health --seconds 2
            """)

    @Argument(help: ArgumentHelp("The URL to ask; a URL without a path gets /health.", valueName: "url"))
    var url: String?
    @Flag(help: "Ask /ready.")
    var ready = false
    @Option(help: ArgumentHelp("How long to wait for the answer (default 5).", valueName: "number"))
    var seconds = 5.0
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard seconds > 0, seconds <= 3600 else { throw ValidationError("--seconds is above 0 and up to 3600") }
    }

    func run() async throws {
        let configuration = try common.collectedSettings().configuration(serves: true)
        var listener = configuration.listener
        let socket = url.flatMap { $0.hasPrefix("unix:") ? ListenAddress($0) : nil }
        if let socket { listener.listen = socket }
        let other = socket == nil ? url : nil
        let target = try target(try other ?? Self.place(of: listener))
        var fetching = configuration.pipeline.fetch
        fetching.proxy = nil
        var name = "\(target)"
        if other == nil, case .unix(let path) = listener.listen {
            fetching.unixSocket = path
            name = "\(listener.listen)"
        }
        fetching.allowPrivateAddresses = .all
        fetching.sources = HostPolicy()
        fetching.connectTimeout = .seconds(seconds)
        fetching.headTimeout = .seconds(seconds)
        fetching.totalTimeout = .seconds(seconds)
        let transport = CurlTransport(fetching)
        defer { transport.shutdown() }
        var request = FetchRequest(url: target, maxBytes: 1 << 20)
        request.followsRedirects = false
        do throws(FetchError) {
            let response = try await transport.fetch(request, onProgress: nil)
            if response.status == 200 {
                if !common.quiet { Console.error("\(name) answers 200") }
                return
            }
            let text = String(decoding: response.body.prefix(500), as: UTF8.self)
            Console.error("pipectl: \(name) answers \(response.status)" + (text.isEmpty ? "" : ": \(text)"))
        } catch {
            Console.error("pipectl: \(error.message)")
        }
        throw ExitCode(ProgramExit.itemsFailed.rawValue)
    }

    /// Returns the URL of the health route if `text` is the server's URL. Otherwise, returns the URL of the given page.
    private func target(_ text: String) throws(CommandFailure) -> SourceURL {
        do throws(SourceError) {
            let url = try SourceURL(text)
            let place = text.hasSuffix("/") ? String(text.dropLast()) : text
            guard place.split(separator: "/", omittingEmptySubsequences: false).count == 3 else { return url }
            return try SourceURL(place + (ready ? "/ready" : "/health"))
        } catch {
            throw CommandFailure(.usage, error.message)
        }
    }

    /// Returns the URL of the server on this machine.
    private static func place(of listener: ListenerConfiguration) throws(CommandFailure) -> String {
        if case .unix = listener.listen { return "http://localhost" }
        guard case .tcp(let host, let port) = listener.listen, port != 0 else {
            throw CommandFailure(
                .usage, "name the server's URL: `listen` is \(listener.listen), which is not a port to connect to")
        }
        let isAny = ["0.0.0.0", "::", "*", ""].contains(host)
        let name = isAny ? "127.0.0.1" : host.contains(":") ? "[\(host)]" : host
        return "http://\(name):\(port)"
    }
}
