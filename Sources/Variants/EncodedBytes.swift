/// Encoded bytes, either in memory or read when a render begins. Reading late means that queued renders take no memory.
package struct EncodedBytes: Sendable {
    package let count: Int
    private let read: @Sendable () -> [UInt8]?
    private let openFile: (@Sendable () -> Int32?)?

    package init(_ bytes: [UInt8]) { self.init(count: bytes.count, read: { bytes }) }

    /// Creates a value that reads its bytes on demand.
    ///
    /// - Parameters:
    ///   - count: the number of bytes.
    ///   - read: returns the bytes, or nil if reading fails. Called on the rendering thread, and may block that thread.
    ///   - open: opens the file again, read-only, if the bytes are a complete file that is never modified. The caller
    ///     closes the descriptor. A worker process can then read the file itself.
    package init(
        count: Int, read: @escaping @Sendable () -> [UInt8]?, open: (@Sendable () -> Int32?)? = nil
    ) {
        self.count = count
        self.read = read
        openFile = open
    }

    /// Returns a read-only descriptor of the file that contains exactly these bytes. Returns nil if the bytes are not
    /// in a file.
    func openedFile() -> Int32? { openFile?() }

    /// Returns the bytes. May block. Throws `undecodable` if the bytes cannot be read.
    package func bytes() throws(RenderError) -> [UInt8] {
        if let bytes = read(), bytes.count == count { return bytes }
        throw RenderError(
            .undecodable, "the original's \(count) bytes cannot be read back from disk; check the disk for errors")
    }
}
