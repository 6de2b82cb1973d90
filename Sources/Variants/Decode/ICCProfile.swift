/// Reads and writes color profiles (ICC.1:2022).
enum ICCProfile {
    /// D50, the white point that profiles are relative to (§7.2.16).
    static let white = [0.9642, 1, 0.8249]

    /// Returns the intent (in libvips' spelling) for conversions from pixels in a color space (`RGB `, `GRAY`, `CMYK`;
    /// §7.2.6). Returns nil if the profile cannot be used. A usable profile is complete, and has either a table for
    /// that direction or primaries and curves (§8.3, §8.4).
    ///
    /// AToB0, the table of the perceptual intent, is also used for intents without a table. libvips ignores a profile
    /// if the table for its intent is missing, so this method returns the perceptual intent if AToB0 is the only table.
    static func intent(_ profile: ByteReader, for space: StaticString) -> String? {
        guard let size = profile.uint32(0), size <= profile.count, profile.matches("acsp", at: 36),
            profile.matches(space, at: 16), let count = profile.uint32(128)
        else { return nil }
        var tags: Set<String> = []
        for at in stride(from: 132, to: 132 + 12 * min(count, 200), by: 12) {
            guard let tag = profile.fourCharacters(at), let offset = profile.uint32(at + 4),
                let length = profile.uint32(at + 8), offset + length <= size
            else { return nil }
            tags.insert(tag)
        }
        let hasCurves = tags.contains("kTRC") || tags.isSuperset(of: ["rXYZ", "gXYZ", "bXYZ", "rTRC", "gTRC", "bTRC"])
        if hasCurves || tags.contains("A2B1") { return "relative" }
        if tags.contains("A2B0") { return "perceptual" }
        return tags.isDisjoint(with: ["D2B0", "D2B1"]) ? nil : "relative"
    }

    /// Returns a version 4 profile with one curve (§10.18, type 3) and, unless it is for gray, a matrix that converts
    /// light to XYZ.
    static func make(_ name: String, _ matrix: [[Double]]?, curve: [Double]) -> [UInt8] {
        func fixed(_ numbers: [Double]) -> [UInt8] {
            numbers.flatMap { Bytes.bigEndian(Int(($0 * 65536).rounded())) }
        }
        func text(_ text: String) -> [UInt8] {
            let units = text.utf16.flatMap { Bytes.bigEndian(Int($0), 2) }
            return [UInt8]("mluc\0\0\0\0\0\0\0\u{1}\0\0\0\u{c}enUS".utf8) + Bytes.bigEndian(units.count)
                + Bytes.bigEndian(28) + units
        }
        func xyz(_ numbers: [Double]) -> [UInt8] { [UInt8]("XYZ \0\0\0\0".utf8) + fixed(numbers) }
        let parametric = [UInt8]("para\0\0\0\0\0\u{3}\0\0".utf8) + fixed(curve)
        var tags = [("desc", text(name)), ("cprt", text("No copyright")), ("wtpt", xyz(white))]
        for (index, letter) in ["r", "g", "b"].enumerated() {
            guard let matrix else { continue }
            tags += [(letter + "XYZ", xyz(matrix.map { $0[index] })), (letter + "TRC", parametric)]
        }
        if matrix == nil { tags.append(("kTRC", parametric)) }
        var (table, data) = (Bytes.bigEndian(tags.count), [UInt8]())
        for (tag, bytes) in tags {
            table += [UInt8](tag.utf8) + Bytes.bigEndian(132 + 12 * tags.count + data.count)
            table += Bytes.bigEndian(bytes.count)
            data += bytes + [UInt8](repeating: 0, count: -bytes.count & 3)
        }
        var header = Bytes.bigEndian(128 + table.count + data.count) + [0, 0, 0, 0, 4, 0x20, 0, 0]
        header += [UInt8]((matrix == nil ? "mntrGRAYXYZ " : "mntrRGB XYZ ").utf8) + [7, 0xE8, 0, 1, 0, 1]
        header += [UInt8](repeating: 0, count: 6) + [UInt8]("acsp".utf8) + [UInt8](repeating: 0, count: 28)
        header += fixed(white) + [UInt8](repeating: 0, count: 48)
        return header + table + data
    }
}

extension CodedColorSpace {
    /// Returns the profile of this color space, or of gray in this color space. Returns nil for HDR, which a matrix and
    /// a curve cannot describe.
    func profile(isGray: Bool) -> [UInt8]? {
        guard case .parametric(let g, let a, let b, let c, let d) = curve else { return nil }
        return ICCProfile.make(title, isGray ? nil : Self.toD50(primaries), curve: [g, a, b, c, d])
    }
}
