import Pipeline
import Synchronization
import CCrypto

/// The tier that is being checked, with convenience methods to query it.
final class TierBench: Sendable {
    let tier: any CacheTier
    private let found = Mutex<[String]>([])

    init(_ tier: any CacheTier) { self.tier = tier }

    var violations: [String] { found.withLock { $0 } }

    /// Records a violation unless `holds` is true.
    func expect(_ holds: Bool, _ what: String) {
        if !holds { found.withLock { $0.append(what) } }
    }

    func store(_ kinds: EntryChange.Kind...) async throws {
        try await tier.store(kinds.map { EntryChange($0) })
    }

    func keep(_ record: OriginalRecord, _ body: [UInt8]?) async throws {
        try await store(.original(record, body: body.map(EntryBody.bytes)))
    }

    func keep(_ entry: VariantEntry, _ body: [UInt8], of source: String?) async throws {
        try await store(.variant(entry, body: body, source: source))
    }

    func records(_ source: String) async throws -> [OriginalRecord] {
        guard case .records(let records)? = try await tier.find(.records(source: source), .description) else {
            return []
        }
        expect(!records.isEmpty, "an entry of no records is a miss")
        return records
    }

    func body(_ digest: String) async throws -> [UInt8]? {
        switch try await tier.find(.original(digest), .body) {
        case .original(.bytes(let bytes)?)?: return bytes
        case .original(.file(let file)?)?: return file.bytes()
        case nil: return nil
        default:
            expect(false, "a look-up of a body returns one")
            return nil
        }
    }

    func variant(_ key: String, of original: String) async throws -> Found? {
        switch try await tier.find(.variant(key, of: original), .body) {
        case .variant(let entry, let body?)?: return Found(entry: entry, body: body)
        case nil: return nil
        default:
            expect(false, "a look-up of a variant with its body returns both")
            return nil
        }
    }

    struct Found: Equatable {
        var entry: VariantEntry
        var body: [UInt8]
    }

    func isThere(_ key: EntryKey) async throws -> Bool { try await tier.find(key, .description) != nil }
}

/// Returns pseudorandom bytes, which are the same in each run.
func sample(_ count: Int, seed: Int) -> [UInt8] {
    var state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1
    return (0..<count).map { _ in
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return UInt8(truncatingIfNeeded: state)
    }
}

/// Returns the SHA-256 digest as 64 lowercase hexadecimal digits.
func digest(_ bytes: [UInt8]) -> String {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    SHA256(bytes, bytes.count, &digest)
    return digest.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

/// Returns the key of the variant with a name.
func key(_ name: String) -> String { digest(Array(name.utf8)) }

func record(
    _ source: String, _ body: [UInt8], selecting: [String: String?] = [:], time: Double = 11
) -> OriginalRecord {
    OriginalRecord(
        source: source,
        response: StoredResponse(
            status: 200, fields: [HeaderField("ETag", "\"a\""), HeaderField("Vary", "accept")], requestTime: time - 1,
            responseTime: time, selecting: selecting),
        digest: digest(body), length: body.count,
        media: MediaDescription(type: "image/png", width: 3, height: 4, details: [1, 0, 1]), fetchMilliseconds: 12.5)
}

func variant(_ name: String, of original: String, _ body: [UInt8]) -> VariantEntry {
    VariantEntry(
        key: key(name), originalDigest: original, digest: digest(body), length: body.count,
        mediaType: "image/webp", width: 30, height: 20, recipe: "thumbnail:30x20", cost: 4.5, created: 1_000)
}
