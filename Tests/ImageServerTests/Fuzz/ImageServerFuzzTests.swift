import TestSupport
import Testing

/// The fuzz targets of this module: one file and one line each; `scripts/fuzz NAME SECONDS` runs one for longer.
@Suite struct ImageServerFuzzTests {
    static let targets: [FuzzTarget] = [
        routeTarget
    ]

    @Test(arguments: targets) func `no input breaks a rule of the target`(target: FuzzTarget) {
        #expect(target.run() == nil)
    }
}
