import Foundation
import HTTPCaching
import Testing

@testable import PipelineCaching

/// The encoded form of entries that an application's tier stores.
struct EntryCodableTests {
    @Test func `records and variants come back as they were encoded, with their selection`() throws {
        var original = record("http://a/\u{E9}", [1, 2], selecting: ["accept": "image/webp", "dpr": nil])
        original.response.isSoftPurged = true
        let entry = variant("v", of: original.digest, [3])
        let (encoder, decoder) = (JSONEncoder(), JSONDecoder())
        let record = try decoder.decode(OriginalRecord.self, from: encoder.encode(original))
        #expect(record == original && record.hasSameSelection(as: original))
        #expect(try decoder.decode(VariantEntry.self, from: encoder.encode(entry)) == entry)
        var other = original
        other.response.selecting["dpr"] = "2"
        #expect(!other.hasSameSelection(as: original))
        other = original
        other.isProvisional = true
        #expect(try decoder.decode(OriginalRecord.self, from: encoder.encode(other)) == other)
        #expect(!other.hasSameSelection(as: original))
    }

    @Test func `records that an earlier version encoded are decoded, marked ones as provisional`() throws {
        for isMarked in [false, true] {
            var former = record("http://a/", [1], selecting: ["accept": "x"])
            if isMarked { former.response.selecting.updateValue(nil, forKey: OriginalRecord.formerMark) }
            var members = try #require(
                JSONSerialization.jsonObject(with: JSONEncoder().encode(former)) as? [String: Any])
            #expect(members.removeValue(forKey: "isProvisional") != nil)
            let decoded = try JSONDecoder().decode(
                OriginalRecord.self, from: JSONSerialization.data(withJSONObject: members))
            #expect(decoded.isProvisional == isMarked && decoded.response.selecting == ["accept": "x"])
        }
    }
}
