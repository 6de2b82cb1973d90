import Glibc
import TestSupport
import Testing

@testable import pipectl

/// `pipectl serve` as a child process, on a port of its own.
struct RunningServer: Sendable {
    let folder: ScratchFolder
    let child: ChildProgram
    let port: Int

    /// Starts it on a cache in the folder.
    ///
    /// - Parameters:
    ///   - settings: further settings, `key=VALUE`; unsigned URLs, loopback origins and patient renders are set.
    ///   - environment: variables, each `NAME=value`.
    ///   - unsigned: the setting `allowUnsigned`; nil leaves it unset.
    ///   - config: a settings file.
    ///   - arguments: further ones.
    ///   - files: how many files the server may open (`ulimit -n`); nil for as many as this program.
    static func start(
        _ settings: [String] = [], folder: ScratchFolder = ScratchFolder(), environment: [String] = [],
        unsigned: Bool? = true, config: String? = nil, arguments: [String] = [], files: Int? = nil
    ) async throws -> RunningServer {
        let patience = ["limits.seconds=120", "limits.encodeSeconds=120"]
        let all =
            (unsigned.map { ["allowUnsigned=\($0)"] } ?? []) + ["allowPrivateAddresses=true", "retries=0"] + patience
            + settings
        let limited = files.map { ["-c", "ulimit -n \($0) && exec \"$@\"", "sh", ChildProgram.path] } ?? []
        let child = try ChildProgram(
            limited + ["serve", "--listen", "127.0.0.1:0", "--cache", folder("cache")]
                + (config.map { ["--config", $0] } ?? []) + all.flatMap { ["--set", $0] } + arguments,
            program: files == nil ? ChildProgram.path : "sh", folder: folder.path, environment: environment)
        let mark =
            all.contains { $0.hasPrefix("server.tls=") }
            ? "listening on https://127.0.0.1:" : "listening on http://127.0.0.1:"
        let told = await child.tells(mark)
        guard let range = told.range(of: mark), let port = Int(told[range.upperBound...].prefix { $0.isNumber }) else {
            child.signal(SIGKILL)
            throw ChildProgram.StartError(description: "the server did not start: \(told)")
        }
        return RunningServer(folder: folder, child: child, port: port)
    }

    /// Starts one, uses it, and ends it with SIGTERM, whatever happens.
    static func with<Value>(
        _ settings: [String] = [], folder: ScratchFolder = ScratchFolder(), environment: [String] = [],
        _ body: (RunningServer) async throws -> Value
    ) async throws -> Value {
        let server = try await start(settings, folder: folder, environment: environment)
        do {
            let value = try await body(server)
            let ended = await server.stop()
            #expect(ended.exit == 0, "\(ended.errors)")
            return value
        } catch {
            server.child.signal(SIGKILL)
            _ = await server.child.end
            throw error
        }
    }

    /// Asks it to end, and waits.
    func stop() async -> ChildProgram.Ended {
        child.signal(SIGTERM)
        return await child.end
    }

    /// One request on a connection of its own.
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

extension String {
    /// Where the text first occurs.
    fileprivate func range(of text: String) -> Range<String.Index>? { firstRange(of: text) }
}
