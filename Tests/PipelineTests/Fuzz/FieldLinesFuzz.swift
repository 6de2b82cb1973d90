@testable import HTTPCaching
@testable import PipelineFetching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// Members of lists, whitespace, letter case, seconds, end-to-end fields.
    static let fieldLinesTarget = FuzzTarget(
        "field-lines",
        words: [
            "Connection: ", "Keep-Alive", "Transfer-Encoding", "close", "\"", "\\", "\\\"", ",", ", ,", " ", "\t", "=",
            "2147483648", "99999999999999999999", "+5", "Set-Cookie: ", "\n", "É",
        ]
    ) { bytes in
        let text = bytes.fuzzText
        let members = FieldLines.members(of: text)
        if FieldLines.members(of: members.joined(separator: ", ")) != members { return "another list the second time" }
        if members.contains(where: { $0.isEmpty || FieldLines.trimmed($0) != $0 }) { return "an untrimmed member" }
        if let seconds = FieldLines.deltaSeconds(text), !(0...1 << 31).contains(seconds) { return "\(seconds) s" }
        let lower = FieldLines.lowercased(text)
        guard FieldLines.lowercased(lower) == lower, FieldLines.isSameName(text, lower) else { return "letter case" }
        let fields = fields(bytes)
        let kept = fields.endToEnd()
        if kept.contains(where: { FieldLines.isHopByHop($0.name) }) { return "a hop-by-hop field is kept" }
        return kept.endToEnd() == kept ? nil : "end-to-end fields that are none"
    }
}
