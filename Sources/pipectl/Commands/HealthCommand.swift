import ArgumentParser
import HTTPCaching
import ImageServerNIO
import Pipeline

struct HealthCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Check whether a server is healthy, for probes of containers and services without curl.",
        discussion: """
            Without a URL, the request goes to the server on this machine, at the address in the setting `listen`. A URL
            can have the form unix:PATH.
            /health reports whether the server is running. /ready (--ready) additionally reports whether it is shutting down.

            Exit codes: 0 the server answered 200, 1 it gave a different answer or none, 2 usage error.

            Examples:
              pipectl health
              pipectl health --ready --config /etc/pipectl/pipectl.yaml
              pipectl health http://images.example:8080/health --seconds 2
            """)

    @Argument(
        help: ArgumentHelp(
            "The URL to request; if it has no path, /health is appended, or /ready with --ready.", valueName: "url"))
    var url: String?
    @Flag(help: "Request /ready.")
    var ready = false
    @Option(help: ArgumentHelp("How many seconds to wait for the response (default 5).", valueName: "number"))
    var seconds = 5.0
    @OptionGroup var common: CommonOptions

    func validate() throws {
        guard seconds > 0, seconds <= 3600 else {
            throw ValidationError("--seconds must be greater than 0 and at most 3600")
        }
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
                if !common.quiet { Console.error("\(name) answered 200") }
                return
            }
            let text = String(decoding: response.body.prefix(500), as: UTF8.self)
            Console.error("pipectl: \(name) answered \(response.status)" + (text.isEmpty ? "" : ": \(text)"))
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
                .usage, "give the URL of the server: the setting `listen` (\(listener.listen)) does not name a port")
        }
        let isAny = ["0.0.0.0", "::", "*", ""].contains(host)
        let name = isAny ? "127.0.0.1" : host.contains(":") ? "[\(host)]" : host
        return "http://\(name):\(port)"
    }
}
