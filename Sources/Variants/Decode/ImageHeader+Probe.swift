extension ImageHeader {
    /// Reads the format, size, pages, alpha, orientation, scans and profile size from encoded bytes. Does not decode
    /// pixels, and does not use libvips, which hangs on some inputs when it detects formats.
    ///
    /// This is safe for any bytes: all reads are bounds-checked, and the time is linear in the number of bytes. The
    /// header of a truncated file can be read as long as the size is available. Decoding the pixels then fails.
    ///
    /// - Throws: `notAnImage` with a description of the bytes, `unsupportedFormat` for formats that are recognized but
    ///   not decoded, or `undecodable` for a known format with a damaged or truncated header.
    public static func probe(_ bytes: [UInt8]) throws(RenderError) -> ImageHeader {
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(RenderError) in try probe(buffer) }
        }
        return try result.get()
    }

    /// Reads the header from memory that stays valid during the call, such as a mapped file.
    public static func probe(_ bytes: UnsafeRawBufferPointer) throws(RenderError) -> ImageHeader {
        let file = ByteReader(bytes).withoutLeadingSpace
        guard let decoder = Catalog.decoders.first(where: { $0.recognizes(file) }) else {
            throw UnsupportedContent.error(for: file)
        }
        return try decoder.header(file)
    }

    static func damaged(_ format: String, _ problem: String) -> RenderError {
        RenderError(.undecodable, "damaged \(format): \(problem)")
    }

    /// Records that the decoder keeps this many bytes per stored pixel.
    mutating func hold(bytesPerPixel: Double) {
        // Limit the product to 1 TiB, which is more than any machine has for one picture, because the number appears in
        // messages.
        heldBytes = Int(min(Double(encodedWidth) * Double(encodedHeight) * bytesPerPixel, 0x1p40))
    }

    /// Throws unless both edges are between 1 and 2²⁴ − 1 (the limit of libvips is 10⁷), so that width × height × pages
    /// cannot overflow later.
    static func checkSize(_ format: String, _ width: Int, _ height: Int) throws(RenderError) {
        guard width > 0, height > 0 else { throw damaged(format, "its size is \(width) × \(height)") }
        guard max(width, height) < 1 << 24 else {
            throw RenderError(
                .overLimit, "\(format) of \(width) × \(height) pixels: no decoder accepts edges this long")
        }
    }
}

extension ImageFormat {
    /// Returns the format of a file that begins with these bytes. Returns nil if no decoder recognizes them.
    package static func recognized(_ bytes: [UInt8]) -> ImageFormat? {
        bytes.withUnsafeBytes { buffer in
            let file = ByteReader(buffer).withoutLeadingSpace
            return Catalog.decoders.first { $0.recognizes(file) }?.format
        }
    }
}
