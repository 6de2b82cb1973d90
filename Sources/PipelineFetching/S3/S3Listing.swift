/// A page of a ListObjectsV2 response, in byte order of keys.
typealias S3Listing = FolderListing

extension FolderListing {
    /// Parses a store's response. Returns nil if it is not a complete listing.
    ///
    /// Accepts the XML that all stores send, which consists of elements and their text in UTF-8, without document types
    /// or CDATA.
    init?(_ body: [UInt8]) {
        var rest = body[...]
        /// The names of the open elements.
        var path: [String] = []
        var (key, size, isEncoded, isComplete, isTruncated) = ("", 0, false, false, nil as Bool?)
        while let open = rest.firstIndex(of: UInt8(ascii: "<")) {
            let text = rest[..<open]
            rest = rest[(open + 1)...]
            guard let close = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
            let tag = rest[..<close]
            rest = rest[(close + 1)...]
            switch tag.first {
            case UInt8(ascii: "?"): continue
            case UInt8(ascii: "!"), nil: return nil
            case UInt8(ascii: "/"):
                guard let name = path.popLast(), tag.dropFirst().elementsEqual(name.utf8) else { return nil }
                guard path.first == "ListBucketResult" else {
                    isComplete = name == "ListBucketResult"
                    continue
                }
                switch (path.count, path.last, name) {
                case (2, "Contents", "Key"): key = Self.unescaped(text)
                case (2, "Contents", "Size"): size = Int(String(decoding: text, as: UTF8.self)) ?? 0
                case (1, _, "Contents"): objects.append(Object(key: key, size: size))
                case (1, _, "NextContinuationToken"): next = text.isEmpty ? nil : Self.unescaped(text)
                case (1, _, "IsTruncated"): isTruncated = text.elementsEqual("true".utf8)
                case (1, _, "EncodingType"): isEncoded = text.elementsEqual("url".utf8)
                default: break
                }
            default:
                if tag.last == UInt8(ascii: "/") { continue }
                path.append(String(decoding: tag.prefix { $0 > 0x20 }, as: UTF8.self))
            }
        }
        guard isComplete else { return nil }
        if isTruncated == true, next == nil { return nil }
        if isTruncated == false { next = nil }
        // The element may come after the keys. Some stores write a space as `+`. All stores write `+` as `%2B`.
        guard isEncoded else { return }
        for index in objects.indices {
            let spaced = objects[index].key.replacing("+", with: " ")
            objects[index].key = String(decoding: SourceURL.percentDecoded(spaced), as: UTF8.self)
        }
    }

    private static func unescaped(_ text: ArraySlice<UInt8>) -> String {
        let text = String(decoding: text, as: UTF8.self)
        guard text.utf8.contains(UInt8(ascii: "&")) else { return text }
        var result = ""
        var rest = text[...]
        while let mark = rest.firstIndex(of: "&") {
            result += rest[..<mark]
            rest = rest[rest.index(after: mark)...]
            let name = rest.prefix { $0 != ";" }
            rest = rest.dropFirst(name.count + 1)
            switch name {
            case "amp": result += "&"
            case "lt": result += "<"
            case "gt": result += ">"
            case "quot": result += "\""
            case "apos": result += "'"
            default:
                let isHex = name.hasPrefix("#x")
                let number = UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10)
                result.unicodeScalars.append(number.flatMap(Unicode.Scalar.init) ?? "\u{FFFD}")
            }
        }
        return result + rest
    }
}
