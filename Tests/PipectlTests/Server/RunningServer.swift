import Glibc
import TestSupport
import Testing

@testable import pipectl

/// `pipectl serve` in this process or as a program, on its own port.
struct RunningServer: Sendable {
    private enum Instance {
        case program(ChildProgram)
        case here(ServerInProcess)
    }

    let folder: ScratchFolder
    private let instance: Instance
    let port: Int

    /// The program; only for servers that were started as one.
    var child: ChildProgram {
        guard case .program(let child) = instance else {
            preconditionFailure("the server was not started as a program")
        }
        return child
    }

    /// Starts it on a cache in the folder.
    ///
    /// - Parameters:
    ///   - settings: further settings, `key=VALUE`; unsigned URLs, loopback origins and patient renders are set.
    ///   - environment: variables, each `NAME=value`.
    ///   - unsigned: the setting `allowUnsigned`; nil leaves it unset.
    ///   - config: a settings file.
    ///   - arguments: further ones.
    ///   - pictures: a folder that is served (FOLDER).
    ///   - hasToken: whether clients need the token for it.
    ///   - isProgram: whether it is a program, for tests that send signals, look at the process or need its workers.
    ///   - files: how many files the program may open (`ulimit -n`); nil for as many as this one.
    static func start(
        _ settings: [String] = [], folder: ScratchFolder = ScratchFolder(), environment: [String] = [],
        unsigned: Bool? = true, config: String? = nil, arguments: [String] = [], pictures: String? = nil,
        hasToken: Bool = false, isProgram: Bool = false, files: Int? = nil
    ) async throws -> RunningServer {
        let patience = ["limits.seconds=120", "limits.encodeSeconds=120"]
        let all =
            (unsigned.map { ["allowUnsigned=\($0)"] } ?? []) + ["allowPrivateAddresses=true", "retries=0"] + patience
            + settings
        let served = pictures.map { [$0] + (hasToken ? [] : ["--no-token"]) } ?? []
        let words =
            ["--listen", "127.0.0.1:0", "--cache", folder("cache")] + (config.map { ["--config", $0] } ?? [])
            + all.flatMap { ["--set", $0] } + arguments + served
        guard isProgram || files != nil else {
            let server = try await ServerInProcess.start(words, folder: folder.path, environment: environment)
            return try await RunningServer(folder, .here(server))
        }
        let limited = files.map { ["-c", "ulimit -n \($0) && exec \"$@\"", "sh", ChildProgram.path] } ?? []
        let child = try ChildProgram(
            limited + ["serve"] + words, program: files == nil ? ChildProgram.path : "sh", folder: folder.path,
            environment: environment, seconds: 600)
        return try await RunningServer(folder, .program(child))
    }

    private init(_ folder: ScratchFolder, _ instance: Instance, after mark: String = "listening on http://127.0.0.1:")
        async throws
    {
        (self.folder, self.instance) = (folder, instance)
        let told = await Self.told(mark, at: instance)
        guard let range = told.firstRange(of: mark), let port = Int(told[range.upperBound...].prefix { $0.isNumber })
        else {
            if case .program(let child) = instance { child.signal(SIGKILL) }
            throw ChildProgram.StartError(description: "the server did not start: \(told)")
        }
        self.port = port
    }

    /// Reaches the same server through a proxy on another port.
    init(_ server: RunningServer, port: Int) {
        (folder, instance, self.port) = (server.folder, server.instance, port)
    }

    private static func told(_ text: String, at instance: Instance) async -> String {
        switch instance {
        case .program(let child): await child.waitForOutput(text)
        case .here(let server): await server.waitForOutput(text)
        }
    }

    /// Returns what it wrote to stderr once that holds the text, or once it has ended.
    func waitForOutput(_ text: String) async -> String { await Self.told(text, at: instance) }

    /// This server at the address of `server.adminListen`.
    func operators() async throws -> RunningServer {
        try await RunningServer(folder, instance, after: "for operators on http://127.0.0.1:")
    }

    /// Starts one, uses it, and ends it, whatever happens.
    static func with<Value>(
        _ settings: [String] = [], folder: ScratchFolder = ScratchFolder(), environment: [String] = [],
        isProgram: Bool = false, _ body: (RunningServer) async throws -> Value
    ) async throws -> Value {
        let server = try await start(settings, folder: folder, environment: environment, isProgram: isProgram)
        do {
            let value = try await body(server)
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
            return value
        } catch {
            await server.kill()
            throw error
        }
    }

    /// Asks it to end, and waits.
    func stop() async -> ChildProgram.Ended {
        switch instance {
        case .program(let child):
            child.signal(SIGTERM)
            return await child.end
        case .here(let server): return await server.stop()
        }
    }

    /// Ends it at once if it is a program.
    func kill() async {
        if case .program(let child) = instance { child.signal(SIGKILL) }
        _ = await stop()
    }

    /// One request on a new connection.
    func ask(
        _ target: String, method: String = "GET", host: String = "test", _ fields: KeyValuePairs<String, String> = [:]
    ) async throws -> RawResponse {
        let client = try await RawClient.connect(port)
        client.send(Self.head(target, method: method, host: host, fields, closes: true))
        let bytes = await client.receivedToEnd()
        guard let response = RawResponse.all(in: bytes, heads: method == "HEAD").first else {
            throw ChildProgram.StartError(description: "no response: \(String(decoding: bytes, as: UTF8.self))")
        }
        return response
    }

    /// A request's head.
    static func head(
        _ target: String, method: String = "GET", host: String = "test", _ fields: KeyValuePairs<String, String> = [:],
        closes: Bool = false
    ) -> String {
        let lines = fields.map { "\($0.key): \($0.value)\r\n" }.joined()
        return "\(method) \(target) HTTP/1.1\r\nHost: \(host)\r\n\(lines)\(closes ? "Connection: close\r\n" : "")\r\n"
    }

    /// The path of a variant.
    static func variant(_ recipe: String, _ source: String) -> String {
        "/variant/unsigned/\(recipe)/\(encoded(source))"
    }

    /// The path of an original.
    static func original(_ source: String) -> String { "/original/unsigned/\(encoded(source))" }

    /// Percent-encoded as one path segment.
    static func encoded(_ text: String) -> String {
        let digits = Array("0123456789ABCDEF")
        return text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: String(UnicodeScalar(byte))
            default: "%\(digits[Int(byte >> 4)])\(digits[Int(byte & 15)])"
            }
        }.joined()
    }
}
