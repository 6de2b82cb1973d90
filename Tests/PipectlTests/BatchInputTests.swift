import Glibc
import Pipeline
import TestSupport
import Testing

@testable import pipectl

@Suite struct BatchInputTests {
    private func sources(_ arguments: [String], excluding: [String] = []) -> [BatchSource] {
        BatchInput(arguments: arguments, excludedFolders: excluding).compactMap {
            if case .source(let source) = $0 { source } else { nil }
        }
    }

    private func failures(_ arguments: [String]) -> [String] {
        BatchInput(arguments: arguments).compactMap {
            if case .failure(_, let failure) = $0 { failure.message } else { nil }
        }
    }

    @Test func `a folder is walked in natural order, hidden names, links and the output folder left out`() {
        let folder = ScratchFolder()
        for name in [
            "in/b.png", "in/a/z.jpg", "in/a/.hidden", "in/B.txt", "in/out/made.png", "in/cache/cache.sqlite",
            "in/é.png", "in/b10.png", "in/b2.png",
        ] {
            folder.write("x", to: name)
        }
        symlink("b.png", folder("in/link.png"))
        symlink(".", folder("in/loop"))
        let found = sources([folder("in")], excluding: [folder("in/out"), folder("in/cache")])
        #expect(
            found.map { String($0.source.dropFirst(folder.path.utf8.count)) }
                == ["/in/a/z.jpg", "/in/b.png", "/in/B.txt", "/in/b2.png", "/in/b10.png", "/in/é.png"])
        #expect(found.map(\.folder) == ["a", "", "", "", "", ""])
        #expect(sources([folder("in") + "/"]).first?.source == folder("in/a/z.jpg"))
        #expect(
            sources([folder("in/b*.png")]).map { String($0.source.dropFirst(folder("in/").utf8.count)) } == [
                "b.png", "b2.png", "b10.png",
            ])
    }

    private func leftOut(_ input: BatchInput) -> [String: SkipReason] {
        var names: [String: SkipReason] = [:]
        for case .leftOut(let source, let reason) in input { names[source] = reason }
        return names
    }

    @Test func `what lies beside pictures is left out with its reason, in folders and globs`() {
        let folder = ScratchFolder()
        let beside: [String: SkipReason] = [
            ".a.jpg": .hidden, "._a.jpg": .hidden, ".\u{301}.jpg": .hidden, "@eaDir": .otherPrograms,
            "#recycle": .otherPrograms, "$Recycle.Bin": .otherPrograms, ".thumbnails": .otherPrograms,
            ".Trash-1000": .otherPrograms, "node_modules": .otherPrograms, "__MACOSX": .otherPrograms,
            "a.psd": .excluded, "raw": .excluded,
        ]
        for name in beside.keys { folder.write("x", to: "in/\(name)" + (name.contains("jpg") ? "" : "/x.jpg")) }
        for name in ["a.jpg", "eaDir/b.jpg", "2024/a.jpg", "2024/raw/b.jpg", "x/2024/c.jpg", "x/y/d.jpg"] {
            folder.write("x", to: "in/" + name)
        }
        var input = BatchInput(arguments: [folder("in")])
        input.rule?.exclusions = ["*.psd", "raw", "2024/*.jpg", "/x/*/d.jpg", "in"]
        var names = beside
        for name in ["2024/a.jpg", "2024/raw", "x/y/d.jpg"] { names[name] = .excluded }
        #expect(leftOut(input) == Dictionary(uniqueKeysWithValues: names.map { (folder("in/" + $0), $1) }))
        let taken = input.compactMap { if case .source(let source) = $0 { source.source } else { nil } }
        #expect(taken == ["a.jpg", "eaDir/b.jpg", "x/2024/c.jpg"].map { folder("in/" + $0) })

        input.rule?.takesHidden = true
        let hidden = beside.filter { $0.value == .hidden }.keys
        #expect(leftOut(input).count == names.count - hidden.count)
        // Names that the user wrote are taken.
        #expect(sources([folder("in/@eaDir"), folder("in/.a.jpg")]).count == 2)
        input = BatchInput(arguments: [folder("in/*")])
        #expect(leftOut(input)[folder("in/@eaDir")] == .otherPrograms)
        #expect(input.itemCount(defaultRecipes: 1) == 8)
    }

    @Test func `links are followed on request, and loops end`() {
        let folder = ScratchFolder()
        for name in ["in/a/1.jpg", "other/2.jpg", "other/deep/3.jpg"] { folder.write("x", to: name) }
        for (target, link) in [
            ("../a", "a/loop"), ("..", "up"), ("../other", "linked"), ("../../in", "back"), ("1.jpg", "a/again.jpg"),
            ("nothing", "dangling"), ("../out", "out"),
        ] {
            symlink(target, folder("in/" + link))
        }
        symlink("../in/linked", folder("other/round"))
        folder.write("x", to: "out/made.jpg")
        var input = BatchInput(arguments: [folder("in")], excludedFolders: [folder("out")])
        #expect(Set(leftOut(input).values) == [.link] && leftOut(input).count == 7)
        input.followsLinks = true
        let taken = input.compactMap { if case .source(let source) = $0 { source.source } else { nil } }
        // `up` leads to the folder above, which has not been entered; all that lies below it has its name there.
        #expect(
            taken.filter { !$0.contains("/up/") && !$0.contains("/back/") }
                == ["a/1.jpg", "a/again.jpg", "linked/2.jpg", "linked/deep/3.jpg"].map { folder("in/" + $0) })
        #expect(taken.count < 20)
        #expect(leftOut(input)[folder("in/a/loop")] == .knownFolder)
        #expect(leftOut(input)[folder("in/dangling")] == .deadLink)
        #expect(!taken.contains { $0.contains("made") })
    }

    @Test func `URLs, files, globs and absent files are told apart`() {
        let folder = ScratchFolder()
        folder.write("x", to: "a.png")
        folder.write("x", to: "b.png")
        folder.write("https://h/1\n\n# note\n  https://h/2 \r\nhttps://h/3", to: "urls.txt")
        #expect(
            sources(["https://h/a*?b", folder("*.png"), folder("urls.txt"), "absent.png"]).map(\.source)
                == [
                    "https://h/a*?b", folder("a.png"), folder("b.png"), "https://h/1", "https://h/2", "https://h/3",
                    "absent.png",
                ])
        #expect(failures([folder("*.gif")]).count == 1)
    }

    @Test(arguments: ["list.txt", "list.csv", "list.jsonl"])
    func `relative paths in a manifest are relative to it`(name: String) {
        let folder = ScratchFolder()
        let named = [
            "a.png", "../b.png", "/c.png", "https://h/d.png", "file:///e.png", "example.org/f.png", "g.h/i.png",
        ]
        folder.write("x", to: "lists/g.h/i.png")
        let lines = name.hasSuffix("jsonl") ? named.map { #"{"source":"\#($0)"}"# } : named
        let head = name.hasSuffix("csv") ? "source\n" : ""
        let file = folder.write(head + lines.joined(separator: "\n"), to: "lists/" + name)
        #expect(
            sources([file]).map(\.source)
                == [
                    folder("lists/a.png"), folder("lists/../b.png"), "/c.png", "https://h/d.png", "file:///e.png",
                    "example.org/f.png", folder("lists/g.h/i.png"),
                ])
    }

    @Test func `JSON Lines give source, name and recipes, and bad lines their number`() {
        let folder = ScratchFolder()
        let file = folder.write(
            #"{"source":"a","name":"n.png","recipes":["circle","@x"]}"# + "\n\n" + #"{"source":"b"}"# + "\n"
                + #"{"source":1}"# + "\nnope\n" + #"{"source":"c","recipe":["x"]}"# + "\n" + #"{"source":"d"}"#,
            to: "m.jsonl")
        #expect(
            sources([file])
                == [
                    BatchSource(source: folder("a"), name: "n.png", recipes: ["circle", "@x"]),
                    BatchSource(source: folder("b")),
                    BatchSource(source: folder("d")),
                ])
        let messages = failures([file])
        #expect(messages.count == 3)
        #expect(messages[0].contains("line 4") && messages[1].contains("line 5") && messages[2].contains("line 6"))
        #expect(messages[2].contains("did you mean `recipes`?"))
        #expect(BatchInput(arguments: [file]).itemCount(defaultRecipes: 3) == 2 + 3 + 3 + 3)
        #expect(BatchInput(arguments: [file]).mayCarryRecipes && !BatchInput(arguments: ["a.png"]).mayCarryRecipes)
    }

    @Test func `CSV follows RFC 4180`() {
        let folder = ScratchFolder()
        let file = folder.write(
            "\u{feff}source,name,recipes\r\na.png,,circle;thumbnail:9\r\n\"b,\"\"q\"\"\nx.png\",\"n,1.png\",\r\n"
                + "too,many,fields,here\r\nc\"d,x,y\r\n\"e\"f,x,y\r\n,x,y\r\nlast.png,l.png,\"thumbnail:1x1,jpeg\"",
            to: "m.csv")
        #expect(
            sources([file])
                == [
                    BatchSource(source: folder("a.png"), recipes: ["circle", "thumbnail:9"]),
                    BatchSource(source: folder("b,\"q\"\nx.png"), name: "n,1.png"),
                    BatchSource(source: folder("last.png"), name: "l.png", recipes: ["thumbnail:1x1,jpeg"]),
                ])
        let messages = failures([file])
        #expect(messages.count == 4)
        #expect(messages[0].contains("line 5") && messages[3].contains("line 8"))
    }

    @Test(arguments: ["name,recipes\nx,y\n", "source,colour\nx,y\n", "source,source\nx,y\n", "source\n\"open"])
    func `a broken CSV is one failed item`(_ text: String) {
        let folder = ScratchFolder()
        let file = folder.write(text, to: "m.csv")
        #expect(failures([file]).count == 1)
        #expect(sources([file]).isEmpty)
    }

    @Test func `lines too long or not UTF-8 are failed items`() {
        let folder = ScratchFolder()
        let long = [UInt8](repeating: 0x61, count: (1 << 20) + 10)
        let file = folder.write(long + [0x0A, 0xFF, 0x0A] + Array("ok".utf8), to: "u.txt")
        #expect(sources([file]).map(\.source) == [folder("ok")])
        #expect(failures([file]).count == 2)
    }

    @Test(arguments: [
        (#"{"source":"a"}"#, "a"), ("source,name\nb,n\n", "b"), ("https://h/source,name\n", "https://h/source,name"),
        ("c", "c"),
    ])
    func `the kind of a stream shows in its first line`(_ text: String, _ source: String) {
        let folder = ScratchFolder()
        let file = open(folder.write(text, to: "x"), O_RDONLY)
        let reader = SniffingReader(LineReader(descriptor: file, name: "stdin", ownsDescriptor: true))
        guard case .source(let found)? = reader.next() else {
            Issue.record("no source")
            return
        }
        #expect(found.source == source)
        #expect(reader.next() == nil)
    }

    @Test func `an interruption ends a stream that stays silent`() {
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        defer { close(ends[1]) }
        let lines = LineReader(descriptor: ends[0], name: "pipe", ownsDescriptor: true, isInterrupted: { true })
        #expect(SourceLinesReader(lines).next() == nil)
    }

    @Test func `long lists are read with little memory`() {
        let folder = ScratchFolder()
        var text = ""
        for number in 0..<100_000 { text += "https://host.example/pictures/number-\(number).jpg\n" }
        let file = folder.write(text, to: "u.txt")
        #expect(BatchInput(arguments: [file]).itemCount(defaultRecipes: 2) == 200_000)
    }
}
