import Pipeline
import Testing

@testable import pipectl

@Suite struct OutputNamerTests {
    private func naming(
        _ source: String, folder: String = "", name: String? = nil, written: String = "thumbnail:300",
        canonical: String = "thumbnail:300x300", several: Bool = false, index: Int = 1, digest: String? = "d",
        ext: String = "jpg"
    ) -> OutputNaming {
        OutputNaming(
            source: source, folder: folder, name: name, recipe: (written, canonical), fileExtension: ext, width: 300,
            height: 200, key: "abc", digest: digest, index: index, hasSeveralRecipes: several)
    }

    private func namer(_ template: String? = nil) throws -> OutputNamer {
        try OutputNamer(template: template)
    }

    @Test(arguments: [
        ("https://a.example/p/cat.jpeg", "cat"), ("https://a.example/p/c%20at%2Fx.tar.gz?q=/y.z#f", "c atx.tar"),
        ("https://a.example:80/", "a.example"), ("https://u:p@a.example", "a.example"), ("https://[::1]:8/", "::1"),
        ("dir/.hidden.png", "hidden"), ("https://h/..%2F..%2Fetc%2Fpasswd", "etcpasswd"), ("https://h/%2e%2e", "h"),
        ("..", "image"), ("photo", "photo"), ("dir/100%25.png", "100%25"), ("https://h/a%00b.png", "ab"),
        ("https://h/100%.png", "100%"), ("https://h/.jpg", "jpg"),
    ])
    func `the stem is the decoded last component without extension`(_ source: String, _ stem: String) {
        #expect(OutputNamer.stem(of: source) == stem)
    }

    @Test func `one recipe is named by the stem, several by stem and recipe`() throws {
        var namer = try namer()
        #expect(try namer.name(for: naming("a/cat.png")).path == "cat.jpg")
        #expect(try namer.name(for: naming("b/dog.png", several: true)).path == "dog-300x300.jpg")
        let preset = naming("b/dog.png", written: "@card", canonical: "thumbnail:1x1", several: true)
        #expect(try namer.name(for: preset).path == "dog-card.jpg")
    }

    @Test func `a later item of another source gets eight digits of its digest`() throws {
        var namer = try namer()
        #expect(try namer.name(for: naming("a/cat.png")).path == "cat.jpg")
        #expect(try namer.name(for: naming("b/cat.png")).path == "cat-\(sha256Hex("b/cat.png").prefix(8)).jpg")
        let again = naming("a/cat.png", canonical: "circle", digest: "e")
        #expect(try namer.name(for: again).path == "cat-\(sha256Hex("a/cat.png\ncircle").prefix(8)).jpg")
        let third = naming("a/cat.png", canonical: "circle", digest: "f")
        #expect(throws: NameError.self) { _ = try namer.name(for: third) }
    }

    @Test func `a name that another output has comes with the template that tells them apart`() throws {
        var namer = try namer("{stem}.{ext}")
        #expect(try namer.name(for: naming("a/cat.png")).wanted == nil)
        let other = try namer.name(for: naming("b/cat.png"))
        #expect(other.wanted == "cat.jpg" && other.disambiguatingTemplate == "{stem}-{index}.{ext}")
        let recipe = try namer.name(for: naming("a/cat.png", canonical: "circle", digest: "e"))
        #expect(recipe.wanted == "cat.jpg" && recipe.disambiguatingTemplate == "{stem}-{recipe}.{ext}")
        let own = try namer.name(for: naming("c/cat.png", name: "cat.jpg"))
        #expect(own.wanted == "cat.jpg" && own.disambiguatingTemplate == nil)
    }

    @Test func `equal bytes of one source under one name are one output`() throws {
        var namer = try namer("{stem}-{width}.{ext}")
        #expect(try !namer.name(for: naming("cat.png")).isRepeated)
        let again = try namer.name(for: naming("cat.png", canonical: "thumbnail:900x900"))
        #expect(again.isRepeated && again.path == "cat-300.jpg" && again.wanted == nil)
        #expect(try !namer.name(for: naming("b/cat.png")).isRepeated)
        let third = try namer.name(for: naming("b/cat.png", canonical: "thumbnail:900x900"))
        #expect(third.isRepeated && third.path == "cat-300-\(sha256Hex("b/cat.png").prefix(8)).jpg")
    }

    @Test func `names that fold to the same file are told apart`() throws {
        var namer = try OutputNamer(template: nil, foldsCase: true)
        let names = ["cat", "CAT", "Cat", "\u{E9}", "E\u{301}", "stra\u{DF}e", "STRASSE"].map { $0 + ".png" }
        let outputs = try names.map { try namer.name(for: naming("d/" + $0)).path }
        #expect(Set(outputs.map { $0.uppercased().lowercased() }).count == names.count, "\(outputs)")
        #expect(outputs[0] == "cat.jpg" && outputs[3] == "\u{E9}.jpg")
    }

    @Test(arguments: ["{dir}/{stem}-{width}.{ext}", "{dir}//{stem}-{width}.{ext}"])
    func `the folder in a name may be empty`(_ template: String) throws {
        var namer = try namer(template)
        #expect(try namer.name(for: naming("d/cat.png")).path == "cat-300.jpg")
        #expect(try namer.name(for: naming("d/x/cat.png", folder: "x")).path == "x/cat-300.jpg")
    }

    @Test func `a default name says neither the extension twice nor has spaces`() throws {
        for (written, canonical, ext, name) in [
            ("webp", "webp", "webp", "cat.webp"),
            ("thumbnail:20,webp", "thumbnail:20x20,webp", "webp", "cat-20x20.webp"),
            ("thumbnail:20,webp:60", "thumbnail:20x20,webp:60", "webp", "cat-20x20_60.webp"),
            ("thumbnail:20,jpeg", "thumbnail:20x20,jpeg", "jpg", "cat-20x20.jpg"),
            ("thumbnail:20,auto", "thumbnail:20x20,auto", "webp", "cat-20x20_auto.webp"),
            ("@my card", "thumbnail:20x20,webp", "webp", "cat-my_card.webp"),
            ("circle", "circle", "png", "cat-circle.png"),
        ] {
            var namer = try namer()
            let item = naming("cat.png", written: written, canonical: canonical, several: true, ext: ext)
            #expect(try namer.name(for: item).path == name)
        }
    }

    @Test func `all placeholders are filled and folders kept`() throws {
        var every = try namer("{dir}/{index}_{stem}_{width}x{height}_{key}_{recipe}.{ext}")
        #expect(
            try every.name(for: naming("d/x/y/cat.png", folder: "x/y", index: 7)).path
                == "x/y/7_cat_300x200_abc_300x300.jpg")
        var plain = try namer("{stem}.{ext}")
        #expect(try plain.name(for: naming("d/x/cat.png", folder: "x")).path == "x/cat.jpg")
        #expect(try plain.name(for: naming("d/x/cat.png", folder: "x", name: "own/name.png")).path == "own/name.png")
    }

    @Test(arguments: ["../x", "a/../../x", "/etc/x", "a/..", "", "a/", ".", "x\0y", "{stemm}", "{stem"])
    func `a manifest's name never leaves the output folder`(_ name: String) throws {
        var namer = try namer()
        #expect(throws: NameError.self) { _ = try namer.name(for: naming("cat.png", name: name)) }
    }

    @Test(arguments: ["{stemm}.{ext}", "{stem", "/abs/{stem}", ""])
    func `a broken template is an error`(_ template: String) {
        #expect(throws: NameError.self) { _ = try namer(template) }
    }

    @Test func `long recipes and names are cut and told apart`() throws {
        let namer = try namer()
        let recipe = String(repeating: "rotate:90,", count: 20)
        let part = namer.recipePart(recipe, recipe)
        #expect(part.utf8.count == 45)
        #expect(part.hasSuffix("-" + sha256Hex(recipe).prefix(8)))
        var other = namer
        let long = try other.name(for: naming("https://h/" + String(repeating: "ä", count: 300) + ".png")).path
        #expect(long.utf8.count <= 255 && long.hasSuffix(".jpg"))
    }

    @Test func `twenty thousand names are told apart`() throws {
        var namer = try namer()
        var names: Set<String> = []
        for number in 0..<20_000 { names.insert(try namer.name(for: naming("d\(number)/cat\(number % 100).png")).path) }
        #expect(names.count == 20_000)
    }
}
