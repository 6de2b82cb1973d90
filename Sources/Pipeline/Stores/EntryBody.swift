import Variants

import struct Crypto.SHA256

/// The body of an entry: in memory, or where it is long in a file.
enum EntryBody: Sendable {
    case bytes([UInt8])
    case file(SpooledBody)

    /// Bytes of the body.
    var count: Int {
        switch self {
        case .bytes(let bytes): bytes.count
        case .file(let file): file.count
        }
    }

    /// The bytes; those of a file are read now, which blocks. nil where the disk fails.
    func read() -> [UInt8]? {
        switch self {
        case .bytes(let bytes): bytes
        case .file(let file): file.bytes()
        }
    }

    /// CRC-32C over the 32 bytes of the body's digest and the body, so that it fits no other entry; a file is read, which blocks.
    /// nil if the disk fails.
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

    /// SHA-256, a file's taken in one pass over it, which blocks. nil where the disk fails.
    func digest() -> Digest? {
        switch self {
        case .bytes(let bytes): return sha256Hex(bytes)
        case .file(let file):
            var hash = SHA256()
            let isWhole = file.forEachPiece { piece in
                hash.update(bufferPointer: piece)
                return true
            }
            return isWhole ? hex(hash.finalize()) : nil
        }
    }

    /// What `ImageHeader.probe` says of a download; a file is read as far as its format needs, which may be all of it.
    ///
    /// A file is mapped: its pages are the system's to drop, and it has no name yet by which anybody could cut it.
    func probe() throws(RenderError) -> ImageHeader {
        switch self {
        case .bytes(let bytes):
            return try ImageHeader.probe(bytes)
        case .file(let file):
            let result = file.withMapping { buffer in
                Result { () throws(RenderError) in try ImageHeader.probe(buffer) }
            }
            guard let result else { throw RenderError(.undecodable, Self.lost) }
            return try result.get()
        }
    }

    /// What is said where a file cannot be read.
    static let lost = "its body cannot be read back from the cache folder; check the disk"
}
