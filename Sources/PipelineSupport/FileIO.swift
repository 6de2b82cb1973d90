import Glibc

/// Repeats a system call for as long as a signal interrupts it (EINTR).
package func uninterrupted<Value: SignedInteger>(_ call: () -> Value) -> Value {
    while true {
        let value = call()
        if value >= 0 || errno != EINTR { return value }
    }
}

/// Reads and writes complete buffers. All calls block, and continue after a signal or a partial transfer.
package enum FileIO {
    /// Reads until the buffer is full, the file ends or an error occurs. Returns the number of bytes that were read.
    /// Sets `errno` to 0 unless an error occurred.
    package static func fill(_ buffer: UnsafeMutableRawBufferPointer, from file: Int32, at offset: Int = 0) -> Int {
        var filled = 0
        while filled < buffer.count, let start = buffer.baseAddress {
            let count = uninterrupted {
                pread(file, start + filled, buffer.count - filled, off_t(offset + filled))
            }
            if count < 0 { return filled }
            if count == 0 { break }
            filled += count
        }
        errno = 0
        return filled
    }

    /// Returns `count` bytes of a file. Returns nil if the file cannot be read, or if it is shorter, in which case
    /// `errno` is 0.
    package static func bytes(_ count: Int, of file: Int32, at offset: Int = 0) -> [UInt8]? {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            let whole = UnsafeMutableRawBufferPointer(start: buffer.baseAddress, count: count)
            filled = fill(whole, from: file, at: offset)
            failure = errno
        }
        errno = failure
        return bytes.count == count ? bytes : nil
    }

    /// Writes all bytes, at `offset` or at the current file position. Returns false and sets `errno` if that fails.
    package static func write(_ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: Int? = nil) -> Bool {
        var written = 0
        while written < bytes.count, let start = bytes.baseAddress {
            let count = uninterrupted {
                if let offset { return pwrite(file, start + written, bytes.count - written, off_t(offset + written)) }
                return Glibc.write(file, start + written, bytes.count - written)
            }
            guard count > 0 else {
                if count == 0 { errno = EIO }
                return false
            }
            written += count
        }
        return true
    }
}
