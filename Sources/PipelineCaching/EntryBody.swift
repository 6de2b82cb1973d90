public import PipelineSupport

/// The body of an entry: in memory, or in a file if it is long.
public enum EntryBody: Sendable {
    case bytes([UInt8])
    case file(SpooledBody)

    /// Bytes of the body.
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .file(let file): file.count
        }
    }

    /// The bytes; nil if the disk fails. Reading a file blocks.
    func read() -> [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .file(let file): file.bytes()
        }
    }

    /// CRC-32C over the 32 bytes of the body's digest and the body, so that it matches no other entry; nil if the disk
    /// fails. Reading a file blocks.
    func checksum(of digest: DigestKey) -> UInt32? {
        var running = CRC32C()
        digest.withBytes { running.update($0) }
        switch self {
        case .bytes(let bytes):
            bytes.withUnsafeBytes { running.update($0) }
        case .file(let file):
            let isWhole = file.forEachPiece { piece in
                running.update(piece)
                return true
            }
            if !isWhole { return nil }
        }
        return running.value
    }

    /// SHA-256 of the body; nil if the disk fails. A file is read in one pass, which blocks.
    package func digest() -> String? {
        switch self {
        case .bytes(let bytes): return sha256Hex(bytes)
        case .file(let file):
            var hash = SHA256()
            let isWhole = file.forEachPiece { piece in
                hash.update(piece)
                return true
            }
            return isWhole ? hex(hash.finalize()) : nil
        }
    }

    /// The error message if a file cannot be read back.
    package static let lost = "its body cannot be read back from the cache folder; check the disk"
}
