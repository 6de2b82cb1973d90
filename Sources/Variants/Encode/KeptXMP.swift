import PipelineSupport

/// Adapts XMP data (ISO 16684-1) to a variant. Like EXIF, XMP describes the original picture.
extension KeptBlobs {
    /// The properties to remove, by namespace. They show, measure or locate parts of the original, and some contain
    /// pictures. The list also contains the reference to content credentials, which any change invalidates, and the
    /// reference to a second packet, which is not kept.
    private static let ended: KeyValuePairs = [
        "http://ns.adobe.com/xap/1.0/": ["Thumbnails"],
        "http://ns.adobe.com/tiff/1.0/": ["ImageWidth", "ImageLength"],
        "http://ns.adobe.com/exif/1.0/": ["PixelXDimension", "PixelYDimension", "SubjectArea", "SubjectLocation"],
        "http://ns.adobe.com/xmp/note/": ["HasExtendedXMP"],
        "http://www.metadataworkinggroup.com/schemas/regions/": ["Regions"],
        "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": ["ImageRegion"],
        "http://ns.microsoft.com/photo/1.2/": ["RegionInfo"],
        "http://ns.google.com/photos/1.0/image/": ["Data"],
        "http://ns.google.com/photos/1.0/depthmap/": ["Data"],
        "http://purl.org/dc/terms/": ["provenance"],
    ]

    /// The properties that describe where a picture was taken or which place it shows. `GPS` matches all names that
    /// begin with it.
    private static let places: KeyValuePairs = [
        "http://ns.adobe.com/exif/1.0/": ["GPS"],
        "http://iptc.org/std/Iptc4xmpExt/2008-02-29/": ["LocationCreated", "LocationShown"],
        "http://iptc.org/std/Iptc4xmpCore/1.0/xmlns/": ["Location", "CountryCode"],
        "http://ns.adobe.com/photoshop/1.0/": ["City", "State", "Country"],
    ]

    /// Returns XMP for a variant. Removes properties that describe the original's pixels, and its position unless
    /// `keepsPosition` is true. Sets `tiff:Orientation` to 1 if `isUpright` is true.
    static func xmp(_ xmp: [UInt8], isUpright: Bool, keepsPosition: Bool = false) -> [UInt8] {
        var bytes = xmp
        if isUpright {
            for (_, value) in properties("Orientation", "http://ns.adobe.com/tiff/1.0/", of: xmp) {
                guard let digit = value.first(where: { xmp[$0] > 0x20 }), 0x31...0x38 ~= xmp[digit] else { continue }
                bytes[digit] = 0x31
            }
        }
        let dropped = Array(ended) + (keepsPosition ? [] : Array(places))
        let gone = dropped.flatMap { space, names in
            names.flatMap { properties($0, space, of: xmp, isPrefix: $0 == "GPS").map(\.whole) }
        }
        var (kept, at): ([UInt8], Int) = ([], 0)
        for range in gone.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.lowerBound >= at {
            kept += bytes[at..<range.lowerBound]
            at = range.upperBound
        }
        return kept + bytes[at...]
    }

    /// Returns the ranges of a property and of its value in a packet. The property may be an attribute or an element,
    /// with any prefix of its namespace. An element without an end tag extends to the end of the packet.
    ///
    /// - Parameter isPrefix: whether to match all names that begin with `name`.
    static func properties(
        _ name: String, _ namespace: String, of xmp: [UInt8], isPrefix: Bool = false
    ) -> [(whole: Range<Int>, value: Range<Int>)] {
        func next(_ byte: UInt8, from at: Int) -> Int? { at < xmp.count ? xmp[at...].firstIndex(of: byte) : nil }
        func afterSpaces(_ at: Int) -> Int { at < xmp.count ? xmp[at...].firstIndex { $0 > 0x20 } ?? xmp.count : at }
        var found: [(whole: Range<Int>, value: Range<Int>)] = []
        for prefix in prefixes(of: namespace, in: xmp) {
            var searched = 0
            let full = prefix + [UInt8](":\(name)".utf8)
            for start in positions(of: full, in: xmp[...]) where start > searched {
                var end = start + full.count
                while isPrefix, end < xmp.count, xmp[end].isLetter { end += 1 }
                let full = Array(xmp[start..<end])
                let at = afterSpaces(end)
                guard at < xmp.count, xmp[start - 1] <= 0x20 || xmp[start - 1] == UInt8(ascii: "<") else { continue }
                if xmp[start - 1] <= 0x20 {
                    let open = afterSpaces(at + 1)
                    guard xmp[at] == UInt8(ascii: "="), open < xmp.count - 1, [0x22, 0x27].contains(xmp[open])
                    else { continue }
                    let close = next(xmp[open], from: open + 1) ?? xmp.count - 1
                    found.append((start..<close + 1, open + 1..<close))
                } else if at > end || [0x2F, 0x3E].contains(xmp[at]) {  // "/", ">"
                    let open = next(0x3E, from: at) ?? xmp.count - 1
                    if xmp[open - 1] == 0x2F {
                        found.append((start - 1..<open + 1, open..<open))
                    } else {
                        let closing = positions(of: [0x3C, 0x2F] + full, in: xmp[open...], limit: 1).first
                        let close = closing.flatMap { next(0x3E, from: $0) } ?? xmp.count - 1
                        found.append((start - 1..<close + 1, min(open + 1, close)..<(closing ?? xmp.count)))
                    }
                }
                searched = max(searched, found.last?.whole.upperBound ?? 0)
            }
        }
        return found
    }

    /// Returns the prefixes that `xmlns:PREFIX="…"` binds to a namespace.
    private static func prefixes(of namespace: String, in xmp: [UInt8]) -> Set<[UInt8]> {
        var prefixes: Set<[UInt8]> = []
        for uri in positions(of: [UInt8](namespace.utf8), in: xmp[...]) {
            guard prefixes.count < 8, let equals = xmp[max(0, uri - 8)..<uri].lastIndex(of: UInt8(ascii: "=")) else {
                continue
            }
            let name = xmp[max(0, equals - 64)..<equals].reversed().drop { $0 <= 0x20 }.prefix {
                $0 > 0x20 && $0 != UInt8(ascii: ":")
            }
            if !name.isEmpty { prefixes.insert(name.reversed()) }
        }
        return prefixes
    }

    private static func positions(of text: [UInt8], in bytes: ArraySlice<UInt8>, limit: Int = .max) -> [Int] {
        var found: [Int] = []
        var rest = bytes
        while found.count < limit, let at = rest.firstIndex(of: text[0]) {
            rest = bytes[at...]
            if rest.starts(with: text) { found.append(at) }
            rest = rest.dropFirst()
        }
        return found
    }
}
