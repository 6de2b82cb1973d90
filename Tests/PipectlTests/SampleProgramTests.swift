import Synchronization
import TestSupport
import Testing
import Variants

@testable import pipectl

extension CommandTests {
    /// The programs in `samples/programs`, which see of the libraries what any program sees.
    @Suite struct SamplePrograms {
        private static func run(
            _ name: String, _ arguments: [String] = [], input: String = "/dev/null", _ folder: ScratchFolder
        ) async throws -> ChildProgram.Ended {
            try await ChildProgram(arguments, program: builtProgram(name), input: input, folder: folder.path).end
        }

        @Test func `a scrolling list shows the right pictures and has to load few of them`() async throws {
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

        @Test func `a worker tries again what may pass, and prints what does not`() async throws {
            let folder = ScratchFolder()
            let asked = Mutex<[String: Int]>([:])
            let picture = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            let origin = try LoopbackOrigin { request in
                let count = asked.withLock { asked in
                    asked[request.path, default: 0] += 1
                    return asked[request.path] ?? 0
                }
                return switch request.path {
                case "/missing.jpg": .response(404)
                case "/down.jpg": .response(503)
                case "/flaky.jpg" where count < 3: .response(503)
                default: .response(200, ["Content-Type": "image/jpeg"], body: picture)
                }
            }
            defer { origin.stop() }
            let jobs = ["fine", "flaky", "missing", "down"].map {
                "\(origin.url("/\($0).jpg")) thumbnail:20,png \(folder($0))"
            }
            let good = folder.write(
                (jobs[..<2] + ["\(Samples.original("grey.jpg")) thumbnail:20,png \(folder("grey"))"])
                    .joined(separator: "\n"), to: "good")
            let done = try await Self.run("job-worker", input: good, folder)
            #expect(done.exit == 0 && done.lines.count == 3, "\(done.text)\(done.errors)")
            for name in ["fine", "flaky", "grey"] {
                #expect(try ImageHeader.probe(try #require(folder.bytes(name))).width == 20)
            }
            #expect(asked.withLock { $0["/flaky.jpg"] } == 3)

            let bad = folder.write((jobs[2...] + ["half"]).joined(separator: "\n") + "\n", to: "bad")
            let dead = try await Self.run("job-worker", input: bad, folder)
            #expect(dead.exit == 1 && dead.lines.count == 3, "\(dead.text)\(dead.errors)")
            #expect(dead.lines.allSatisfy { $0.hasPrefix("dead: ") })
            #expect(
                dead.text.contains("404") && dead.text.contains("503") && dead.text.contains("SOURCE RECIPE OUTPUT"))
            #expect(asked.withLock { $0["/missing.jpg"] } == 1 && asked.withLock { $0["/down.jpg"] } == 5)
        }
    }
}
