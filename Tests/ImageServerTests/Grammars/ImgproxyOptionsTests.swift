import PipelineSupport
import Testing

@testable import ImageServer
@testable import Variants

@Suite struct ImgproxyOptionsTests {
    private func options(
        _ text: String, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyOptions {
        try ImgproxyTesting.choice(text, set: change).options
    }

    private func problem(
        _ text: String, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyProblem? {
        try ImgproxyTesting.problem("/_/\(text)/plain/http://h/a.jpg", set: change)
    }

    @Test func `the last option of a kind wins, part by part`() throws {
        let size = try options("w:9/rs:fill:50:40")
        #expect(size.size == SIMD2(50, 40) && size.type == .fill)
        let kept = try options("rs:fill:50:40:1:1:no:3:4/rs:::60/s:70/g:ea:1:2/g::5")
        #expect(kept.size == SIMD2(70, 60) && kept.type == .fill && kept.enlarges && kept.extends.isOn)
        #expect(kept.extends.gravity.kind == .no && kept.extends.gravity.offset == SIMD2(3, 4))
        #expect(kept.gravity.kind == .ea && kept.gravity.offset == SIMD2(5, 2))
        #expect(try options("rs:fit:50:50:1/el:0").enlarges == false)
    }

    @Test(arguments: ["1", "t", "T", "true", "True", "TRUE", "0", "f", "yes", "2", "tRUE"])
    func `booleans have six true spellings`(_ word: String) throws {
        let isTrue = ["1", "t", "T", "true", "True", "TRUE"].contains(word)
        #expect(try options("el:\(word)").enlarges == isTrue)
        #expect(try options("sm:\(word)/scp:\(word)/ar:\(word)").stripMetadata == isTrue)
    }

    @Test func `options have their long and short names`() throws {
        for (text, path) in [
            ("width:7", \ImgproxyOptions.size.x), ("w:7", \.size.x), ("height:7", \.size.y), ("h:7", \.size.y),
            ("min-width:7", \.minimum.x), ("mw:7", \.minimum.x), ("min-height:7", \.minimum.y), ("mh:7", \.minimum.y),
            ("zoom:7", \.zoom.x), ("z:7", \.zoom.y), ("z:1:7", \.zoom.y), ("dpr:7", \.dpr), ("blur:7", \.blur),
            ("bl:7", \.blur), ("sharpen:7", \.sharpen), ("sh:7", \.sharpen), ("pixelate:7", \.pixelate),
            ("pix:7", \.pixelate), ("quality:7", \.quality), ("q:7", \.quality), ("max_bytes:7", \.maxBytes),
            ("mb:7", \.maxBytes), ("crop:7", \.crop.x), ("c::7", \.crop.y), ("size::7", \.size.y),
            ("resize::7", \.size.x), ("exp:7", \.expiry),
        ] {
            #expect(try options(text + "/dpr:7")[keyPath: path] == 7, "\(text)")
        }
    }

    @Test func `padding follows CSS`() throws {
        for (text, padding) in [
            ("1", SIMD4<Double>(1, 1, 1, 1)), ("1:2", [1, 2, 1, 2]), ("1:2:3", [1, 2, 3, 2]),
            ("1:2:3:4", [1, 2, 3, 4]),
            (":2", [0, 2, 0, 2]), ("5:::4", [5, 5, 5, 4]), ("0", [0, 0, 0, 0]),
        ] {
            #expect(try options("pd:" + text).padding == padding, "\(text)")
        }
    }

    @Test func `colors are hexadecimal digits or three numbers`() throws {
        #expect(try options("bg:F0a").background == "ff00aa")
        #expect(try options("bg:255:0:16").background == "ff0010")
        #expect(try options("bg:fff/bg:").background == nil)
        #expect(try options("t:10:abc:1:1").trim?.color == "aabbcc")
    }

    @Test(arguments: [
        "w:-1", "w:1.5", "w:1e3", "w:NaN", "w:inf", "w:0x10", "w: 1", "w:+1", "w:1_000", "w:9999999999999999999999999",
        "h:--1", "rs:cover:1:1", "rs:fit:1:1:1:1:ce:0:0:9", "s:1:2:3:4:5:6:7:8", "w:1:2", "dpr:0", "dpr:-1", "dpr:1e2",
        "dpr:Infinity", "dpr:1000000", "z:0", "z:1:2:3", "mw:a", "g:top", "g:obj", "g:objw:face:1", "g:fp", "g:fp:0.5",
        "g:fp:2:0", "g:fp:-0.1:0", "g:sm:1", "g:no:1:2:3", "g:no:1e1", "g:no:.", "ex:1:sm", "exar:1:sm", "c:-1:5",
        "c:5:5:no:1:1:1", "t:-1", "t:256", "t:1:red", "t:1:ff:1", "t:1:fff:1:1:1", "pd:-1", "pd:1:2:3:4:5", "pd:1.5",
        "rot:45", "rot:a", "fl:1:1:1", "bg:red", "bg:ff", "bg:1:2", "bg:256:0:0", "bg:1:2:3:4", "bg:::", "blur:-1",
        "blur:101", "sh:x", "pix:-1", "wm:2", "wm:1:sm", "wm:1:ch", "wm:1:ce:0:0:-1", "q:101", "q:-1",
        "fq:webp", "fq:webp:0", "fq:xyz:50", "mb:-1", "f:xyz", "f:best", "skp:xyz", "exp:abc", "exp:-1", "fn:%zz",
        "fn:!!:1", "fn:a%0Ab", "fn:%ff", "pr:unknown", "nosuch:1", "W:1", "resizing_algorithm:cubic", "ra:cubic",
        "wmu:aHR0", "page:1", "bga:0.5", "a:1", "hs:md5:0", "dpi:72", "car:1", "aq:dssim", ":1", "::",
    ])
    func `a wrong option is not found, and the problem names it`(_ text: String) throws {
        let problem = try #require(try problem(text))
        #expect(problem.status == 404 && problem.general == "Invalid URL")
        #expect(problem.detail.contains("`\(text.prefix { $0 != ":" })"), "\(problem.detail)")
    }

    @Test func `options of the commercial edition are named as such`() throws {
        for name in ["ra:cubic", "monochrome:1", "wmt:aa", "g:obj:face", "f:best", "f:mp4", "wm:1:ch", "da:1"] {
            #expect(try problem(name)?.detail.contains("commercial edition") == true, "\(name)")
        }
    }

    @Test func `security options are forbidden unless the setting allows them`() throws {
        for text in ["msr:1", "msfs:1", "maf:1", "mafr:1", "mrd:1", "max_src_resolution:1"] {
            let problem = try #require(try problem(text))
            #expect(problem.status == 403 && problem.detail.contains("`\(text.dropLast(2))`"))
            #expect(try self.problem(text) { $0.securityOptions = true } == nil)
        }
        let limits = try options("msr:1.5/maf:3/mafr:4.5/mrd:5") { $0.securityOptions = true }.limits
        #expect(
            limits
                == ImgproxyLimits(
                    sourceMegapixels: 1.5, sourceBytes: 0, animationFrames: 3, frameMegapixels: 4.5, resultDimension: 5)
        )
    }

    @Test func `some options are accepted without effect`() throws {
        #expect(try ImgproxyTesting.steps("ph:1/preserve_hdr:0/eth:1/enforce_thumbnail:t/cb:x") == "")
    }

    @Test func `the settings restrict the options of URLs, but not of presets`() throws {
        let change = { (settings: inout ImgproxySettings) in
            settings.options = ["w", "preset"]
            settings.presets = ["big": "h:900"]
        }
        #expect(try options("width:5/pr:big", set: change).size == SIMD2(5, 900))
        #expect(try problem("h:5", set: change)?.detail.contains("`h`") == true)
    }

    @Test func `another separator stands between arguments`() throws {
        let change = { (settings: inout ImgproxySettings) in settings.argumentsSeparator = "," }
        #expect(try options("rs,fill,5,6", set: change).size == SIMD2(5, 6))
        #expect(try ImgproxyTesting.problem("/_/rs:fill:5:6/plain/http://h/a", set: change)?.status == 404)
    }

    // MARK: Presets

    @Test func `presets are applied in their place`() throws {
        let change = { (settings: inout ImgproxySettings) in
            settings.presets = ["default": "w:1/q:50", "a": "w:2/h:2/pr:b", "b": "h:3", "loop": "h:7/pr:loop/w:8"]
        }
        #expect(try options("", set: change).size == SIMD2(1, 0))
        #expect(try options("pr:a", set: change).size == SIMD2(2, 3))
        #expect(try options("w:9/pr:a:b", set: change).size == SIMD2(2, 3))
        #expect(try options("pr:a/w:9", set: change).size == SIMD2(9, 3))
        #expect(try options("preset:loop", set: change).size == SIMD2(8, 7))
        #expect(try options("pr:a", set: change).quality == 50)
    }

    @Test func `with presetsOnly the first segment lists presets`() throws {
        let change = { (settings: inout ImgproxySettings) in
            settings.presetsOnly = true
            settings.presets = ["default": "q:50", "a": "w:2", "b": "h:3"]
        }
        func options(_ path: String) throws -> ImgproxyOptions? {
            guard case .picture(let choice) = try ImgproxyTesting.read(path, set: change).kind else { return nil }
            return choice.options
        }
        #expect(try options("/_/a:b/plain/http://h/a.jpg")?.size == SIMD2(2, 3))
        #expect(try options("/_/a/aHR0cDovL2gvYS5qcGc")?.quality == 50)
        for path in ["/_/w:5/plain/http://h/a", "/_/a/w:5/plain/http://h/a", "/_/plain/http://h/a"] {
            #expect(try ImgproxyTesting.problem(path, set: change)?.status == 404, "\(path)")
        }
    }

    @Test func `presets cannot multiply work`() throws {
        let change = { (settings: inout ImgproxySettings) in
            settings.presets = ["p": (0..<100).map { _ in "w:1" }.joined(separator: "/")]
        }
        #expect(try problem(Array(repeating: "pr:p", count: 5).joined(separator: "/"), set: change) == nil)
        #expect(try problem(Array(repeating: "pr:p", count: 200).joined(separator: "/"), set: change)?.status == 404)
    }

    // MARK: Settings

    @Test func `wrong settings are refused with the name of the member`() throws {
        let wrong: [(member: String, change: (inout ImgproxySettings) -> Void)] = [
            ("keys", { $0.keys = [.init(key: "xyz", salt: "00")] }), ("keys", { $0.keys = [.init(key: "", salt: "")] }),
            ("keys", { $0.keys = [.init(key: "000", salt: "00")] }), ("signatureSize", { $0.signatureSize = 33 }),
            ("signatureSize", { $0.signatureSize = 0 }), ("trustedSignatures", { $0.trustedSignatures = [""] }),
            ("presets", { $0.presets = ["a": "w:x"] }), ("presets", { $0.presets = ["a": "pr:b"] }),
            ("presets", { $0.presets = ["a": "plain"] }), ("presetsOnly", { $0.presetsOnly = true }),
            ("options", { $0.options = ["w", "nosuch"] }), ("baseURL", { $0.baseURL = "example.org" }),
            ("localRoot", { $0.localRoot = "pictures" }), ("autoFormats", { $0.autoFormats = [.png] }),
            ("enforceFormats", { $0.enforceFormats = [.jpeg] }), ("preferredFormats", { $0.preferredFormats = [] }),
            ("preferredFormats", { $0.preferredFormats = [.bmp] }), ("quality", { $0.quality = 0 }),
            ("formatQuality", { $0.formatQuality = [.webp: 101] }), ("ttl", { $0.ttl = -1 }),
            ("animationFrames", { $0.animationFrames = 0 }), ("maxResultDimension", { $0.maxResultDimension = -1 }),
            ("watermark", { $0.watermark = "a b" }), ("watermarkOpacity", { $0.watermarkOpacity = 1.1 }),
            ("watermarkOpacity", { $0.watermarkOpacity = .nan }),
            ("securityCeiling", { $0.securityCeiling.animationFrames = 9 }),
            ("securityCeiling", { ($0.securityOptions, $0.securityCeiling.animationFrames) = (true, .infinity) }),
            ("argumentsSeparator", { $0.argumentsSeparator = "" }),
            ("argumentsSeparator", { $0.argumentsSeparator = "/" }),
            ("argumentsSeparator", { $0.argumentsSeparator = "::" }),
            ("urlReplacements", { $0.urlReplacements = [.init(pattern: "", replacement: "x")] }),
            ("secret", { $0.secret = "" }),
        ]
        for (member, change) in wrong {
            var settings = ImgproxySettings()
            change(&settings)
            let error = #expect(throws: InvalidSetting.self, "\(member)") { try ImgproxyReader(settings) }
            #expect(error?.message.contains("`\(member)`") == true, "\(error?.message ?? "")")
        }
        _ = try ImgproxyReader(ImgproxySettings())
    }
}
