import PipelineSupport

/// What an answer carries: bytes that the caches hold, or a part of a file.
///
/// Iterating gives the body in pieces, whichever it is; a server that can send files by itself uses `file`.
public struct AnswerBody: Sendable, AsyncSequence {
    /// A part of a file. The body keeps the file open; it has no name and does not change.
    public struct File: Sendable {
        let body: SpooledBody
        /// Bytes of the file that the answer carries.
        public let range: Range<Int>
        /// Open for reading for as long as this value exists. Use `pread(2)` or `sendfile(2)`: its position is
        /// unspecified.
        public var descriptor: Int32 { body.descriptor }
    }

    /// The body, if it is in memory; empty if it is in a file.
    public let bytes: ArraySlice<UInt8>
    /// The file that has the body; nil if it is in memory.
    public let file: File?

    /// Bytes of the body.
    public var count: Int { file?.range.count ?? bytes.count }

    /// Bytes of the largest piece.
    public static let pieceBytes = 256 << 10

    init(_ response: ServerResponse, isHead: Bool) {
        let isEmpty = isHead || !response.mayHaveBody
        bytes = isEmpty ? [] : response.body
        file = isEmpty ? nil : response.file.map { File(body: $0.file, range: $0.range) }
    }

    /// The file ended before its range did: the connection must be closed, since the announced length cannot be sent.
    public struct TruncatedFile: Error {}

    public struct AsyncIterator: AsyncIteratorProtocol {
        private var bytes: ArraySlice<UInt8>
        private let file: File?
        private var position: Int

        init(_ body: AnswerBody) {
            bytes = body.bytes
            file = body.file
            position = body.file?.range.lowerBound ?? 0
        }

        /// The next piece, at most `pieceBytes` long; nil after the last.
        ///
        /// - Throws: `TruncatedFile`.
        public mutating func next() async throws -> ArraySlice<UInt8>? {
            guard let file else {
                let piece = bytes.prefix(pieceBytes)
                bytes = bytes.dropFirst(piece.count)
                return piece.isEmpty ? nil : piece
            }
            let count = Swift.min(pieceBytes, file.range.upperBound - position)
            guard count > 0 else { return nil }
            guard let piece = file.body.bytes(position..<position + count) else { throw TruncatedFile() }
            position += count
            return piece[...]
        }
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }
}
