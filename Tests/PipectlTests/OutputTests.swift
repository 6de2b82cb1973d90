import Pipeline
import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

@Suite struct AtomicOutputTests {
    @Test func `a file is written once and left alone when equal`() throws {
        let folder = ScratchFolder()
        let path = folder("a/b/c.bin")
        #expect(throws: FileError.self) { try AtomicOutput.write([1, 2, 3], to: path) }
        #expect(try AtomicOutput.write([1, 2, 3], to: path, makeFolders: true))
        let before = FileIdentity(path: path)
        #expect(try !AtomicOutput.write([1, 2, 3], to: path))
        #expect(FileIdentity(path: path) == before)
        #expect(try AtomicOutput.write([1, 2, 4], to: path))
        #expect(folder.bytes("a/b/c.bin") == [1, 2, 4])
        #expect(try AtomicOutput.write([], to: path))
        #expect(folder.names("a/b") == ["c.bin"])
    }

    @Test func `a link to a file stays a link`() throws {
        let folder = ScratchFolder()
        folder.write("old", to: "real")
        #expect(symlink("real", folder("link")) == 0)
        #expect(try AtomicOutput.write([7], to: folder("link")))
        #expect(folder.bytes("real") == [7])
        var status = stat()
        #expect(lstat(folder("link"), &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    @Test func `devices and FIFOs are written straight`() throws {
        let folder = ScratchFolder()
        #expect(try AtomicOutput.write([1], to: "/dev/null"))
        let path = folder("fifo")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = open(path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        #expect(try AtomicOutput.write([5, 6], to: path))
        var buffer = [UInt8](repeating: 0, count: 8)
        #expect(read(reader, &buffer, 8) == 2 && buffer.prefix(2) == [5, 6])
    }

    @Test func `what cannot be written is an error that names it`() {
        let folder = ScratchFolder()
        folder.write("x", to: "file")
        for path in [folder.path, folder("file/below"), "/proc/none/x", "", "/dev/full", folder("absent/")] {
            let error = #expect(throws: FileError.self) {
                try AtomicOutput.write([1], to: path, makeFolders: true)
            }
            // A folder that cannot be made is named itself.
            #expect(error.map { path.hasPrefix($0.path) && $0.description.contains($0.path) } == true)
        }
        #expect(folder.names() == ["file"])
    }

    @Test func `only a regular file is replaced`() {
        let folder = ScratchFolder()
        #expect(mkfifo(folder("pipe"), 0o600) == 0)
        let error = #expect(throws: FileError.self) { try AtomicFile(path: folder("pipe")) }
        #expect(error?.description.contains("not a regular file") == true && folder.names() == ["pipe"])
    }

    @Test func `an abandoned file leaves nothing`() throws {
        let folder = ScratchFolder()
        let file = try AtomicFile(path: folder("x"))
        try file.write([1])
        _ = consume file
        #expect(folder.names().isEmpty)
    }
}

@Suite struct ItemJSONTests {
    @Test func `members come in the order of the design`() {
        var item = ItemJSON(source: "a\"b\\c\u{1}é", recipe: "circle", outcome: .rendered)
        item.key = "k"
        item.output = "o/x.png"
        item.written = true
        item.originalOutcome = .unneeded
        item.collapsed = false
        item.bytes = 12
        item.width = 3
        item.height = 4
        item.format = "png"
        item.digest = "d"
        item.milliseconds = Timings(
            queue: .microseconds(123.45), fetch: .milliseconds(1), decode: .milliseconds(2.5), total: .milliseconds(3))
        #expect(
            item.line == #"{"source":"a\"b\\c\u0001é","recipe":"circle","key":"k","output":"o/x.png","written":true,"#
                + #""outcome":"rendered","originalOutcome":"none","collapsed":false,"bytes":12,"width":3,"height":4,"#
                + #""format":"png","digest":"d","milliseconds":{"queue":0.123,"fetch":1,"decode":2.5,"operations":0,"#
                + #""encode":0,"store":0,"total":3}}"#)
    }

    @Test func `a failed item has its code and message`() throws {
        var item = ItemJSON(source: "s", recipe: "", outcome: .failed)
        item.error = BatchFailure(code: .notFound, message: "line\nbreak")
        let value = try JSONParser.parse(item.line)
        #expect(value["error"]?["code"] == .string("notFound"))
        #expect(value["error"]?["message"] == .string("line\nbreak"))
        #expect(value["key"] == nil)
    }

    @Test func `numbers JSON cannot hold are null`() {
        #expect(JSONText.number(.infinity) == "null")
        #expect(JSONText.number(.nan) == "null")
        #expect(JSONText.number(2) == "2")
    }

    @Test func `exit codes are those of the design`() {
        #expect(ProgramExit.allCases.map(\.rawValue) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 130])
        #expect(ProgramExit(.overLimit) == .notAnImage)
        #expect(ProgramExit(.maskUnavailable) == .usage)
        #expect(ProgramExit(.init(rawValue: "something new")) == .renderFailed)
        #expect(
            PipelineError.Code(rawValue: "overLimit").exitCode == 5
                && PipelineError.Code(rawValue: "overLimit").status == 413)
    }

    @Test func `docs commands md holds the table of error codes`() throws {
        let parts = Samples.folder.split(separator: "/", omittingEmptySubsequences: false)
        let path = parts.dropLast().joined(separator: "/") + "/docs/commands.md"
        let text = String(decoding: try #require(ScratchFolder.bytes(at: path)), as: UTF8.self)
        let codes = PipelineError.Code.all + PipelineError.Code.ofItems
        let rows = codes.map { code in
            let status = PipelineError.Code.ofItems.contains(code) ? "" : String(code.status)
            return "| `\(code.rawValue)` | \(code.exitCode) | \(status) | \(code.summary) |"
        }
        let table = (["| `error.code` | exit code | HTTP status | meaning |", "|---|---|---|---|"] + rows)
            .joined(separator: "\n")
        #expect(text.contains(table + "\n"), "replace the table by:\n\(table)")
        #expect(Set(codes).count == codes.count)
        for code in codes {
            #expect(
                ProgramExit(rawValue: code.exitCode) != nil && (400..<600).contains(code.status)
                    && !code.summary.isEmpty)
        }
    }
}

@Suite struct TextTests {
    @Test func `columns line up and nothing trails`() {
        var table = TextTable([("name", .left), ("bytes", .right)])
        table.add("é\u{1b}[31m", "12")
        table.add("longer name")
        #expect(table.text == "name         bytes\né [31m          12\nlonger name\n")
    }

    @Test func `sizes and times are short`() {
        #expect(
            [0, 999, 1500, 999_949, 12_345_678].map(Readable.bytes) == ["0 B", "999 B", "1.5 kB", "1.0 MB", "12.3 MB"])
        #expect(
            [0.44, 42, 185, 7800].map { Readable.duration(seconds: $0) } == [
                "0.4 s", "42 s", "3 min 05 s", "2 h 10 min",
            ])
    }

    @Test func `the progress line says count, rate, time left, hits and errors at most ten times a second`() {
        var progress = ProgressLine(total: 100)
        var summary = BatchSummary()
        summary.items = 50
        summary.outcomes = [.disk: 20, .failed: 2]
        let line = progress.update(summary, seconds: 10)
        #expect(line == ProgressLine.clear + "50/100 50% · 5.0/s · 10 s left · 20 hits · 2 errors")
        #expect(progress.update(summary, seconds: 10.05) == nil)
        #expect(progress.update(summary, seconds: 10.11) != nil)
        // The first second says little: workers start, and the first items may come from the caches.
        var beginning = ProgressLine(total: 100)
        summary.items = 3
        #expect(beginning.update(summary, seconds: 0.3)?.contains("left") == false)
        #expect(beginning.update(summary, seconds: 1.1)?.contains("left") == false)
        summary.items = 10
        #expect(beginning.update(summary, seconds: 2.2)?.contains("left") == true)
        var unknown = ProgressLine(total: nil, width: 12)
        #expect(unknown.update(summary, seconds: 1)?.count == ProgressLine.clear.count + 11)
    }

    @Test(arguments: [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")])
    func `base64 is that of RFC 4648 §10`(_ plain: String, _ encoded: String) {
        #expect(Base64.text(Array(plain.utf8)) == encoded)
    }

    @Test func `links are relative and encoded`() {
        #expect(Gallery.link(from: "/a/b", to: "/a/out/c d#1.png") == "../out/c%20d%231.png")
        #expect(Gallery.link(from: "/a/b", to: "/a/b/x.png") == "x.png")
        #expect(absolutePath("/a/./b//../c") == "/a/c")
    }
}
