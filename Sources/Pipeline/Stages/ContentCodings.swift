import CCodings
import HTTPCaching
import PipelineCaching
import Variants

/// The content codings of a response body (`Content-Encoding`, RFC 9110 §8.4). Some origins use them although no
/// request accepts any. Bodies are stored and returned as received, and decoded before a render.
struct ContentCodings: Sendable, Hashable {
    /// The names of the codings, in the order in which they were applied.
    private let names: [String]

    /// Reads the codings from header fields. Returns nil if the fields declare no coding.
    init?(_ fields: [HeaderField]) {
        names = fields.values(of: "content-encoding").flatMap { $0.split(separator: ",") }
            .map { FieldLines.trimmed(String($0)).lowercased() }.filter { !$0.isEmpty && $0 != "identity" }
        if names.isEmpty { return nil }
    }

    /// The number of bytes to which a body may grow by any factor. Larger bodies are limited by `maxGrowth`.
    static let freeGrowth = 1_000_000
    /// The maximum ratio of a larger body's length after decoding to its length before decoding. Even drawings, which
    /// compress best, stay below it.
    static let maxGrowth = 20

    /// Returns the decoded bytes. Bytes that are already a picture are returned unchanged, because some origins declare
    /// a coding that they did not apply.
    ///
    /// - Parameter limit: the maximum number of decoded bytes, checked during decoding. If there are two codings, the
    ///   limit applies to the total of both results.
    /// - Throws: `overLimit`, `undecodable`, or `unsupportedFormat` if a coding is unknown or there are more than two
    ///   codings.
    func decoded(_ body: [UInt8], limit: Int) throws(RenderError) -> [UInt8] {
        guard names.count <= 2 else {
            throw RenderError(.unsupportedFormat, "the origin sent \(names.count) content codings; the maximum is two")
        }
        var bytes = body
        let growth = max(Self.freeGrowth, Self.maxGrowth * body.count)
        var left = min(limit, growth)
        for name in names.reversed() where ImageFormat.recognized(bytes) == nil {
            guard let next = try Self.decoded(name, bytes, left) else {
                let most =
                    growth < limit
                    ? "more than \(growth) bytes, \(Self.maxGrowth) times the received size"
                    : "more than \(limit) bytes (limits.bytes)"
                throw RenderError(
                    .overLimit,
                    "the body of \(body.count) bytes decodes to \(most) with the content coding `\(name)`")
            }
            bytes = next
            left -= bytes.count
        }
        return bytes
    }

    /// Decodes one coding. Returns nil if there are more than `limit` bytes.
    private static func decoded(_ name: String, _ body: [UInt8], _ limit: Int) throws(RenderError) -> [UInt8]? {
        let coding: Int
        switch name {
        case "gzip", "x-gzip": coding = ccodings_gzip
        case "deflate": coding = ccodings_deflate
        case "br": coding = ccodings_br
        default:
            throw RenderError(
                .unsupportedFormat,
                "the origin sent the content coding `\(name)`, which was not requested; only gzip, deflate and br are supported"
            )
        }
        guard let state = ccodings_open(Int32(coding)) else {
            throw RenderError(.overBudget, "not enough memory to decode the content coding")
        }
        defer { ccodings_close(state) }
        var (result, bytes): (Int32, [UInt8]) = (Int32(ccodings_more), [])
        var piece = [UInt8](repeating: 0, count: 262_144)
        body.withUnsafeBufferPointer { body in
            var (next, left) = (body.baseAddress, body.count)
            while result == ccodings_more, bytes.count <= limit {
                let count = ccodings_step(state, &next, &left, &piece, piece.count, &result)
                bytes += piece[..<count]
            }
        }
        guard bytes.count <= limit else { return nil }
        guard result == ccodings_end else {
            throw RenderError(
                .undecodable,
                "the body is damaged: it is incomplete, or not encoded with `\(name)` as declared by the origin")
        }
        return bytes
    }
}

extension EntryBody {
    /// Returns the bytes as received. Blocks.
    func sent() throws(RenderError) -> [UInt8] {
        switch self {
        case .bytes(let bytes): return bytes
        case .file(let file):
            guard let read = file.bytes() else { throw RenderError(.undecodable, Self.lost) }
            return read
        }
    }

    /// Probes a body, after decoding the content codings that the fields declare. Blocks.
    func probe(_ fields: [HeaderField], limit: Int) throws(RenderError) -> ImageHeader {
        guard let codings = ContentCodings(fields) else { return try probe() }
        return try ImageHeader.probe(codings.decoded(sent(), limit: limit))
    }
}
