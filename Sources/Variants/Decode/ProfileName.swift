/// Reads the name of a color profile (ICC.1:2022 §7.3, §9.2.41).
enum ProfileName {
    /// Returns the name. Returns nil if the profile has no name or is truncated before it.
    static func read(_ profile: ByteReader) -> String? {
        guard profile.matches("acsp", at: 36), let count = profile.uint32(128) else { return nil }
        for entry in 0..<min(count, 100) {
            let at = 132 + entry * 12
            guard profile.matches("desc", at: at), let offset = profile.uint32(at + 4) else { continue }
            return text(profile.part(offset, profile.uint32(at + 8) ?? 0))
        }
        return nil
    }

    /// Returns the text of a tag. Version 2 profiles use `desc`, which contains ASCII. Version 4 profiles use `mluc`,
    /// which contains UTF-16 in several languages. The first language is used.
    private static func text(_ tag: ByteReader) -> String? {
        if tag.matches("desc") { return tag.text(12, limit: min(tag.uint32(8) ?? 0, 128)) }
        guard tag.matches("mluc"), let length = tag.uint32(20), let offset = tag.uint32(24) else { return nil }
        var units: [UInt16] = []
        for at in stride(from: offset, to: offset + min(length, 256), by: 2) {
            guard let unit = tag.uint16(at), unit != 0 else { break }
            units.append(UInt16(unit))
        }
        return units.isEmpty ? nil : String(decoding: units, as: UTF16.self)
    }
}
