import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Batches of files with names or contents like other files'.
    @Suite struct BatchNames {
        private let site = CommandSite()
        private static let pictures = [
            "grey.jpg", "night-tiny.jpg", "meadow-small.jpg", "balloon-palette.png", "balloon.webp",
            "moon-grey-alpha.png",
        ]

        private func copy(_ sample: String, to name: String) throws {
            site.folder.write(try #require(ScratchFolder.bytes(at: Samples.original(sample))), to: name)
        }

        /// Canonically equivalent names: é, Å and the ångström sign, Ω and the ohm sign. One begins with a combining mark.
        private static let names = ["\u{E9}", "e\u{301}", "\u{C5}", "\u{212B}", "\u{301}\u{3A9}", "\u{301}\u{2126}"]

        @Test func `names that differ in bytes alone are files of their own, in folders and lists`() async throws {
            for (name, sample) in zip(Self.names, Self.pictures) {
                try copy(sample, to: "in/" + name)
                try copy(sample, to: "plain/" + sample)
            }
            let list = Self.names.enumerated().map { number, name in #"{"source":"in/\#(name)","name":"\#(number)"}"# }
            site.folder.write(list.joined(separator: "\n"), to: "list.jsonl")
            let recipe = ["-r", "thumbnail:20,png", "--gallery", "sheet.html", "-o"]
            for (input, output) in [("plain", "expected"), ("in", "out"), ("list.jsonl", "listed")] {
                let ended = try await site.run(["batch", input] + recipe + [output])
                #expect(ended.exit == 0 && !ended.errors.contains("duplicates"), "\(ended.errors)")
                #expect(site.folder.names(output).count == Self.names.count, "\(site.folder.names(output))")
            }
            for (number, (name, sample)) in zip(Self.names, Self.pictures).enumerated() {
                let expected = site.folder.bytes("expected/" + sample.prefix { $0 != "." } + ".png")
                #expect(expected != nil && site.folder.bytes("out/\(name).png") == expected, "\(Array(name.utf8))")
                #expect(site.folder.bytes("listed/\(number)") == expected)
            }
            let sheet = site.folder.text("sheet.html") ?? ""
            #expect(sheet.ranges(of: "<figure>").count == Self.names.count)
        }
    }
}
