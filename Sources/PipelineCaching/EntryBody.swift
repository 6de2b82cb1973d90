public import PipelineSupport

/// Contains the body of an entry: bytes in memory, or a file if the body is long.
public enum EntryBody: Sendable {
    case bytes([UInt8])
    case file(SpooledBody)

    /// The length of the body in bytes.
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .file(let file): file.count
        }
    }

    /// Returns the bytes. Returns nil if the disk fails. Reading a file blocks.
    func read() -> [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .file(let file): file.bytes()
        }
    }

    /// Passes the body to `take` in pieces, in order, until `take` returns false. Returns false in that case, or if the
    /// disk fails. Reading a file blocks.
    func forEachPiece(_ take: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        switch self {
        case .bytes(let bytes): bytes.withUnsafeBytes(take)
        case .file(let file): file.forEachPiece(take)
        }
    }

    /// Returns the CRC-32C over the 32 bytes of the body's digest, followed by the body, so that it matches no other
    /// entry. Returns nil if the disk fails. Reading a file blocks.
    func checksum(of digest: DigestKey) -> UInt32? {
        var running = CRC32C()
        digest.withBytes { running.update($0) }
        let isWhole = forEachPiece { piece in
            running.update(piece)
            return true
        }
        return isWhole ? running.value : nil
    }

    /// Returns the SHA-256 of the body. Returns nil if the disk fails. A file is read in one pass, which blocks.
    package func digest() -> String? {
        var hash = SHA256()
        let isWhole = forEachPiece { piece in
            hash.update(piece)
            return true
        }
        return isWhole ? hex(hash.finalize()) : nil
    }

    /// The error message if a file cannot be read back.
    package static let lost = "the stored body cannot be read back from the cache folder; check the disk for errors"
}
