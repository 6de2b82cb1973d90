import Pipeline
import PipelineSupport
import Variants

/// The entries that workers store: everything is derived from a seed, so that a reader knows what it must find.
enum Contents {
    /// Seeds of bodies that several workers use at once.
    static let sharedSeeds = 0..<12
    static let keysPerWorker = 24
    static let sourcesPerWorker = 8

    /// Lengths of bodies inside the index, at the limit for that, and in files.
    private static let lengths = [0, 1, 700, 20_000, 32_768, 32_769, 90_000, 250_000]

    static func body(_ seed: Int) -> [UInt8] {
        let length = lengths[seed % lengths.count]
        var bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: seed &* 37), count: length)
        for (at, byte) in "\(seed) ".utf8.enumerated() where at < length { bytes[at] = byte }
        return bytes
    }

    static func digest(_ bytes: [UInt8]) -> String { sha256Hex(bytes) }
    static func digest(_ seed: Int) -> String { digest(body(seed)) }

    static func key(_ worker: Int, _ number: Int) -> String { digest(Array("\(worker)/\(number)".utf8)) }
    /// The seed of the original of a variant: a key determines its original, which several workers share.
    static func original(_ worker: Int, _ number: Int) -> Int {
        sharedSeeds.lowerBound + (worker + number) % sharedSeeds.count
    }

    static func source(_ worker: Int, _ number: Int) -> String { "http://\(worker)/\(number)" }

    static func record(_ worker: Int, _ number: Int, body seed: Int, _ bytes: [UInt8]) -> OriginalRecord {
        OriginalRecord(
            source: source(worker, number),
            response: StoredResponse(
                status: 200, fields: [HeaderField("ETag", "\"\(seed)\"")], requestTime: 1, responseTime: 2),
            digest: digest(bytes), length: bytes.count, header: nil, fetchMilliseconds: Double(1 + seed % 50))
    }

    static func variant(_ worker: Int, _ number: Int, body bytes: [UInt8]) -> VariantEntry {
        let original = original(worker, number)
        return VariantEntry(
            key: key(worker, number), originalDigest: digest(original), digest: digest(bytes), length: bytes.count,
            format: .webp, width: 3, height: 2, recipe: "thumbnail:3x2", cost: Double(1 + original % 20), created: 1)
    }

    /// The variant that a store holds under a worker's key.
    static func variant(
        _ worker: Int, _ number: Int, in store: DiskStore
    ) throws(StoreError) -> (entry: VariantEntry, body: [UInt8])? {
        try store.variant(key: key(worker, number), of: digest(original(worker, number)))
    }
}

/// Repeatable pseudorandom numbers (SplitMix64).
struct Numbers: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: Int) { state = UInt64(truncatingIfNeeded: seed) }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }

    mutating func below(_ limit: Int) -> Int { Int(next() % UInt64(limit)) }
    mutating func seed() -> Int { next() % 2 == 0 ? below(Contents.sharedSeeds.count) : below(4_000) }
}
