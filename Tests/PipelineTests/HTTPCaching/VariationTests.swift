import Pipeline
import Testing

struct VariationTests {
    private func kept(_ vary: String, _ fields: [HeaderField]) -> StoredResponse? {
        var response = stored(["Vary": vary])
        guard let selecting = Variation.selectingFields(of: response.fields, requestFields: fields) else { return nil }
        response.selecting = selecting
        return response
    }

    @Test func `a request selects when every listed field is as it was (RFC 9111 §4.1)`() throws {
        let response = try #require(kept("Accept, X-B", [HeaderField("accept", "a"), HeaderField("Accept", " b ")]))
        let expected: [String: String?] = ["accept": "a, b", "x-b": String?.none]
        #expect(response.selecting == expected)
        #expect(Variation.selects(response, requestFields: [HeaderField("ACCEPT", "a, b"), HeaderField("X-C", "1")]))
        #expect(!Variation.selects(response, requestFields: [HeaderField("Accept", "a")]))
        #expect(!Variation.selects(response, requestFields: []))
        let other = [HeaderField("Accept", "a, b"), HeaderField("X-B", "")]
        #expect(!Variation.selects(response, requestFields: other))
    }

    @Test func `without Vary every request selects; with a star anywhere none does (RFC 9111 §4.1)`() {
        #expect(Variation.selects(stored([:]), requestFields: [HeaderField("Accept", "x")]))
        #expect(kept("*", []) == nil && kept("Accept, *", []) == nil)
        #expect(!Variation.selects(stored(["Vary": "Accept", "vary": "*"]), requestFields: []))
    }
}
