import Glibc

/// Reads a file in chunks of 64 KiB and counts lines.
final class LineReader {
    let name: String
    private let descriptor: Int32
    private let ownsDescriptor: Bool
    private let isInterrupted: @Sendable () -> Bool
    private var buffer = [UInt8](repeating: 0, count: 65_536)
    private var start = 0
    private var end = 0
    private var isAtEnd = false
    private var hasBegun = false
    /// The line number of the next byte, starting at 1.
    private(set) var line = 1
    /// The error of a failed read, after which the rest of the input is not read.
    var failure: FileError?
    static let lineLimit = 1 << 20

    init(
        descriptor: Int32, name: String, ownsDescriptor: Bool = false,
        isInterrupted: @escaping @Sendable () -> Bool = { false }
    ) {
        self.descriptor = descriptor
        self.name = name
        self.ownsDescriptor = ownsDescriptor
        self.isInterrupted = isInterrupted
    }

    deinit { if ownsDescriptor { close(descriptor) } }

    /// Returns the next byte without consuming it, or nil at the end. Skips a byte order mark at the beginning of the
    /// file.
    func peek() -> UInt8? {
        guard start == end else { return buffer[start] }
        guard fill() else { return nil }
        if !hasBegun {
            hasBegun = true
            if let encoding = Self.wideEncoding(buffer[start..<end].prefix(2)) {
                let remedy = "convert it with `iconv -f \(encoding) -t UTF-8`"
                failure = FileError("read", name, "it is encoded in \(encoding), but a list must be UTF-8; \(remedy)")
                start = end
                isAtEnd = true
                return nil
            }
            if end - start >= 3, buffer[start] == 0xEF, buffer[start + 1] == 0xBB, buffer[start + 2] == 0xBF {
                start += 3
                return peek()
            }
        }
        return buffer[start]
    }

    /// Returns the encoding of text that begins with these two bytes, which are a byte order mark or contain a NUL.
    /// Returns nil if the text may be UTF-8.
    private static func wideEncoding(_ bytes: ArraySlice<UInt8>) -> String? {
        switch Array(bytes) {
        case [0xFF, 0xFE]: "UTF-16LE"
        case [0xFE, 0xFF]: "UTF-16BE"
        case let pair where pair.count == 2 && pair[0] != 0 && pair[1] == 0: "UTF-16LE"
        case let pair where pair.count == 2 && pair[0] == 0 && pair[1] != 0: "UTF-16BE"
        default: nil
        }
    }

    func take() -> UInt8? {
        guard let byte = peek() else { return nil }
        start += 1
        if byte == 0x0A { line += 1 }
        return byte
    }

    /// Whether the buffered data begins with the CSV header of a manifest: known column names separated by commas,
    /// including `source`.
    var beginsWithHeader: Bool {
        guard peek() != nil else { return false }
        let first = buffer[start..<end].prefix { $0 != 0x0A && $0 != 0x0D }.prefix(64)
        let columns = String(decoding: first, as: UTF8.self).split(separator: ",")
        return columns.contains("source") && columns.allSatisfy { ["source", "name", "recipes"].contains($0) }
    }

    /// Returns the next line without its terminator (LF or CR LF), or nil at the end.
    func nextLine() throws(NameError) -> String? {
        guard peek() != nil else { return nil }
        var bytes: [UInt8] = []
        var isTooLong = false
        while peek() != nil {
            let stop = buffer[start..<end].firstIndex(of: 0x0A)
            let piece = buffer[start..<(stop ?? end)]
            if bytes.count + piece.count > Self.lineLimit { isTooLong = true } else { bytes.append(contentsOf: piece) }
            start = stop.map { $0 + 1 } ?? end
            if stop != nil {
                line += 1
                break
            }
        }
        if isTooLong { throw NameError(message: "the line exceeds the limit of 1 MiB") }
        if bytes.last == 0x0D { bytes.removeLast() }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw NameError(message: "the line is not valid UTF-8")
        }
        return text
    }

    private func fill() -> Bool {
        guard !isAtEnd else { return false }
        start = 0
        end = 0
        while true {
            var waiting = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            // Poll with a short timeout, because the signal may be delivered to a different thread and not interrupt
            // this one.
            let ready = poll(&waiting, 1, 200)
            if isInterrupted() { break }
            if ready == 0 || (ready < 0 && errno == EINTR) { continue }
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                end = count
                return true
            }
            if count < 0 {
                if errno == EINTR || errno == EAGAIN { continue }
                failure = FileError("read", name)
            }
            break
        }
        isAtEnd = true
        return false
    }
}
