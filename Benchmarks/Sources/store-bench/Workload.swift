import HTTPCaching
import PipelineCaching

/// Generates entries like those a server makes; equal numbers give equal entries.
struct Workload {
    /// Length of a variant's body in bytes.
    static let length = 8_000
    /// Length of an original's body in bytes.
    static let originalLength = 1_000_000
    /// How many variants one original has.
    private static let variantsOfOriginal = 5

    private let body: [UInt8]

    init() {
        var random = SplitMix(seed: 1)
        body = (0..<Self.originalLength).map { _ in UInt8(truncatingIfNeeded: random.next()) }
    }

    static func key(_ number: Int) -> String { hexadecimal(number, of: 1) }

    /// The digest of a variant's original.
    static func original(of number: Int) -> String { hexadecimal(number / variantsOfOriginal, of: 2) }

    /// A body that is unique to the number.
    func bytes(_ number: Int, length: Int) -> [UInt8] {
        var bytes = Array(body[..<length])
        withUnsafeBytes(of: number) { bytes.replaceSubrange(0..<min(8, length), with: $0.prefix(length)) }
        return bytes
    }

    static func source(_ number: Int) -> String {
        "https://pictures.example.org/albums/2026/picture-\(number / variantsOfOriginal).jpg"
    }

    /// - Parameter cost: milliseconds; nil for a pseudorandom value from 10 to 99.
    static func variant(_ number: Int, length: Int, cost: Double? = nil) -> VariantEntry {
        var random = SplitMix(seed: UInt64(number))
        return VariantEntry(
            key: key(number), originalDigest: original(of: number),
            digest: hexadecimal(number, of: 3), length: length, mediaType: "image/webp", width: 300, height: 200,
            recipe: "thumbnail:300x200:fill,sharpen", cost: cost ?? Double(10 + random.next() % 90),
            created: 1_790_000_000)
    }

    static func original(_ number: Int) -> OriginalRecord {
        let fields = [
            HeaderField("content-type", "image/jpeg"), HeaderField("cache-control", "max-age=86400"),
            HeaderField("etag", "\"\(number)\""), HeaderField("last-modified", "Sat, 21 Nov 2026 10:00:00 GMT"),
        ]
        return OriginalRecord(
            source: "https://pictures.example.org/originals/\(number).jpg",
            response: StoredResponse(
                status: 200, fields: fields, requestTime: 1_790_000_000, responseTime: 1_790_000_000),
            digest: hexadecimal(number, of: 4), length: originalLength, media: nil, fetchMilliseconds: 200)
    }

    private static func hexadecimal(_ number: Int, of kind: UInt64) -> String {
        let digits = Array("0123456789abcdef".utf8)
        var random = SplitMix(seed: UInt64(number) &* 8 &+ kind)
        var text: [UInt8] = []
        text.reserveCapacity(64)
        for _ in 0..<4 {
            let word = random.next()
            for shift in stride(from: 60, through: 0, by: -4) { text.append(digits[Int(word >> UInt64(shift) & 15)]) }
        }
        return String(decoding: text, as: UTF8.self)
    }
}

/// The SplitMix64 generator. Source: G. Steele, D. Lea, C. Flood: Fast Splittable Pseudorandom Number Generators.
/// OOPSLA 2014.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678 }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var word = state
        word = (word ^ word >> 30) &* 0xBF58_476D_1CE4_E5B9
        word = (word ^ word >> 27) &* 0x94D0_49BB_1331_11EB
        return word ^ word >> 31
    }
}
