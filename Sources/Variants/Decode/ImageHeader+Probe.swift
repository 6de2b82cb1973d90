extension ImageHeader {
    /// Reads format, size, pages, alpha, orientation, scans and profile size from the bytes alone, without decoding a
    /// pixel and without libvips, whose own sniffing hangs on some inputs.
    ///
    /// Safe on any bytes: all reads are bounds-checked, time is linear in their number. A file cut short still has a
    /// header as long as its size can be read; the pixels then fail in the decoder.
    ///
    /// Throws `notAnImage` (saying what the bytes look like), `unsupportedFormat` (formats that are recognised only) or `undecodable` (a known format whose header is damaged or cut short).
    public static func probe(_ bytes: [UInt8]) throws(RenderError) -> ImageHeader {
        let result = bytes.withUnsafeBytes { buffer in
            Result { () throws(RenderError) in try probe(buffer) }
        }
        return try result.get()
    }

    /// Probes memory that stays valid during the call, such as a mapped file.
    public static func probe(_ bytes: UnsafeRawBufferPointer) throws(RenderError) -> ImageHeader {
        let file = ByteReader(bytes).withoutLeadingSpace
        guard let decoder = Catalogue.decoders.first(where: { $0.recognises(file) }) else {
            throw ForeignBytes.error(for: file)
        }
        return try decoder.header(file)
    }

    static func damaged(_ format: String, _ problem: String) -> RenderError {
        RenderError(.undecodable, "damaged \(format): \(problem)")
    }

    /// Notes that the decoder keeps so many bytes for each stored pixel.
    mutating func hold(bytesPerPixel: Double) {
        // No machine has a TiB for one picture, and the product is a number in messages.
        heldBytes = Int(min(Double(width) * Double(height) * bytesPerPixel, 0x1p40))
    }

    /// Accepts edges from 1 to 2²⁴ − 1 (libvips: up to 10⁷), so that width × height × pages cannot overflow later.
    static func checkSize(_ format: String, _ width: Int, _ height: Int) throws(RenderError) {
        guard width > 0, height > 0 else { throw damaged(format, "its size is \(width) × \(height)") }
        guard max(width, height) < 1 << 24 else {
            throw RenderError(
                .overLimit, "\(format) of \(width) × \(height) pixels: no decoder accepts edges this long")
        }
    }
}

extension ImageFormat {
    /// The format that these first bytes of a file are of; nil if there is a decoder for none.
    package static func recognised(_ bytes: [UInt8]) -> ImageFormat? {
        bytes.withUnsafeBytes { buffer in
            let file = ByteReader(buffer).withoutLeadingSpace
            return Catalogue.decoders.first { $0.recognises(file) }?.format
        }
    }
}
