import PipelineSupport
import TestSupport

@testable import pipectl

extension PipectlFuzzTests {
    /// JSON of settings and manifests: a value written as JSON is read as what writes the same text.
    static let jsonTarget = FuzzTarget(
        "json",
        words: [
            "{", "}", "[", "]", ":", ",", "\"", "\\", "\\u0000", "\\ud83d\\ude00", "\\ud800", "true", "false", "null",
            "1e308", "1e999", "-0", "0.1", "9223372036854775808", "[[[[[[[[", "\"a\":", " ", "\n", "\u{feff}", "é",
        ]
    ) { bytes in
        do throws(JSONParser.Malformed) {
            let text = try JSONParser.parse(bytes.fuzzText).json
            let again: String
            do throws(JSONParser.Malformed) {
                again = try JSONParser.parse(text).json
            } catch {
                return "`\(text)` is refused: \(error)"
            }
            return again == text ? nil : "`\(text)` becomes `\(again)`"
        } catch {
            return error.offset <= bytes.fuzzText.utf8.count ? nil : "an error at byte \(error.offset)"
        }
    }
}
