import PipelineSupport

/// The body of a site's response: bytes in memory, or a part of a file.
///
/// ```swift
/// func send(_ body: AnswerBody, write: (ArraySlice<UInt8>) async throws -> Void) async throws {
///     for try await chunk in body { try await write(chunk) }
/// }
/// ```
///
/// Each chunk has at most 256 KiB. The iteration throws if the file is shorter than expected. In this case, close the
/// connection, because the announced length cannot be sent. A server that can send files directly uses `withFile(_:)`.
public struct AnswerBody: Sendable, AsyncSequence {
    /// The body, if it is in memory. If the body is in a file, the slice is empty.
    public let bytes: ArraySlice<UInt8>
    private let file: SpooledBody?
    /// The byte range of the file that is sent.
    private let range: Range<Int>

    /// The length of the body in bytes.
    public var count: Int { file == nil ? bytes.count : range.count }

    init(_ response: ServerResponse, isHead: Bool) {
        let isEmpty = isHead || !response.mayHaveBody
        bytes = isEmpty ? [] : response.body
        file = isEmpty ? nil : response.file?.file
        range = response.file?.range ?? 0..<0
    }

    /// Calls `send` with the file that contains the body. Returns nil without calling `send` if the body is in memory.
    ///
    /// - Parameters:
    ///   - send: A closure that receives a file descriptor, which is open for reading during the call, and the range of
    ///     bytes to send. Use `pread(2)` or `sendfile(2)`, because the file offset is unspecified. Duplicate the
    ///     descriptor with `dup(2)` to send the bytes later. The file has no name and does not change.
    public func withFile<Result>(_ send: (Int32, Range<Int>) throws -> Result) rethrows -> Result? {
        guard let file else { return nil }
        return try withExtendedLifetime(file) { try send(file.descriptor, range) }
    }

    /// Returns an iterator over the chunks of the body.
    public func makeAsyncIterator() -> some AsyncIteratorProtocol<ArraySlice<UInt8>, any Error> {
        Pieces(bytes: bytes, file: file, position: range.lowerBound, end: range.upperBound)
    }

    private struct Pieces: AsyncIteratorProtocol {
        var bytes: ArraySlice<UInt8>
        let file: SpooledBody?
        var position: Int
        let end: Int

        mutating func next() async throws -> ArraySlice<UInt8>? {
            let count = Swift.min(256 << 10, file == nil ? bytes.count : end - position)
            guard count > 0 else { return nil }
            guard let file else {
                defer { bytes.removeFirst(count) }
                return bytes.prefix(count)
            }
            guard let piece = file.bytes(position..<position + count) else { throw TruncatedFile() }
            position += count
            return piece[...]
        }
    }

    private struct TruncatedFile: Error {}
}
