@testable import HTTPCaching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// `Vary`: a response stored for a request is selected by that request. Lines of `Vary` are the response's.
    static let variationTarget = FuzzTarget(
        "variation",
        words: [
            "Vary: ", "Accept: ", "Accept-Language: ", "accept-encoding", "Accept", "*", ",", ";q=", ";q=0.500", "0.5",
            "1.000", "gzip", "de-DE", "en;q=0.8", "\"", " ", "\t", "\n", ":", "; Q=1",
        ]
    ) { bytes in
        let all = fields(bytes)
        let response = all.filter { FieldLines.isSameName($0.name, "vary") }
        guard let names = Variation.names(in: response) else { return nil }
        if names != names.sorted() || Set(names).count != names.count { return "names that are not sorted" }
        guard let selecting = Variation.selectingFields(of: response, requestFields: all) else { return "no selection" }
        let stored = StoredResponse(
            status: 200, fields: response, requestTime: fuzzedTime, responseTime: fuzzedTime, selecting: selecting)
        return Variation.selects(stored, requestFields: all) ? nil : "a request does not select what was stored for it"
    }
}
