import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// The programs in `samples/programs`, built as a program of somebody else is.
    @Suite struct SamplePrograms {
        private static func run(
            _ name: String, _ arguments: [String] = [], input: String = "/dev/null", _ folder: ScratchFolder
        ) async throws -> ChildProgram.Ended {
            try await ChildProgram(arguments, program: builtProgram(name), input: input, folder: folder.path).end
        }

        @Test func `a list that scrolls shows the right pictures, few of which it had to load`() async throws {
            let files = ["night-tiny.jpg", "meadow-small.jpg", "balloon-palette.png"].map(Samples.original)
            let ended = try await Self.run("scrolling-list", files, ScratchFolder())
            let numbers = try Dictionary(
                uniqueKeysWithValues: ended.lines.map { line in
                    let parts = line.split(separator: ": ")
                    return (String(parts[0]), try #require(parts.last.flatMap { Int($0) }, "\(line)"))
                })
            #expect(ended.exit == 0 && ended.errors == "", "\(ended.errors)")
            #expect(numbers["rows that show another picture"] == 0)
            // Down again, over everything that was shown on the way back.
            #expect(try #require(numbers["shown from memory"]) >= 239)
            // Nothing is loaded while the list is flung, and then what the twelve rows show.
            #expect(try #require(numbers["loaded"]) >= 12)
            #expect(numbers["superseded"] == 988)
            #expect((24...263).contains(try #require(numbers["prefetched"])))
            #expect((251...275).contains(try #require(numbers["originals asked for"])))
        }
    }
}
