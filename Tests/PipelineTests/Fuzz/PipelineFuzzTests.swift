@testable import HTTPCaching
import TestSupport
import Testing

@testable import Pipeline

/// The fuzz targets of this module: one file and one line each; `scripts/fuzz NAME SECONDS` runs one for longer.
@Suite struct PipelineFuzzTests {
    static let targets: [FuzzTarget] = [
        cacheControlTarget,
        entityTagTarget,
        fieldLinesTarget,
        httpDateTarget,
        rangeTarget,
        urlTarget,
        variationTarget,
    ]

    @Test(arguments: targets) func `no input breaks a rule of the target`(target: FuzzTarget) {
        #expect(target.run() == nil)
    }

    /// Field lines, one a line of the input: a name, a colon, a value without the space around it.
    static func fields(_ bytes: [UInt8]) -> [HeaderField] {
        bytes.fuzzLines.map { line in
            let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            return HeaderField(String(parts[0]), parts.count > 1 ? FieldLines.trimmed(String(parts[1])) : "")
        }
    }
}
