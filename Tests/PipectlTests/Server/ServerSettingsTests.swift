import PipelineSupport
import ImageServer
import ImageServerNIO
import Pipeline
import TestSupport
import Testing
import Variants

@testable import pipectl

@Suite struct ServerSettingsTests {
    private func read(_ assignments: [String]) throws -> (RunConfiguration, site: ServerConfiguration) {
        // These settings start a server only if some client may use it.
        let lets = assignments.contains { $0.hasPrefix("keys=") || $0.hasPrefix("allowUnsigned") }
        let settings = Settings.collected(assignments: assignments + (lets ? [] : ["allowUnsigned=true"]))
        let (configuration, site) = try settings.serving()
        return (configuration, site)
    }

    @Test func `the defaults are those of the table`() throws {
        let (configuration, site) = try read([])
        let listener = configuration.listener
        #expect(listener.listen.description == "127.0.0.1:8080" && site.formats == [.jxl, .webp, .avif])
        #expect(try read(["render.effort=thorough"]).site.formats == [.jxl, .avif, .webp])
        #expect(try read(["render.effort=thorough", "auto=webp"]).site.formats == [.webp])
        #expect(try !Settings().configuration(serves: true).site.signature.allowUnsigned)
        #expect(site.recipes.allowed == nil && site.forwardedFields.isEmpty)
        #expect(site.policy == .protocol && site.freshness == nil && site.presetFreshness.isEmpty)
        #expect(try read(["policy=cacheElseLoad"]).site.policy == .cacheElseLoad)
        #expect(listener.connections == 1024 && listener.headerBytes == 16_384 && listener.idleSeconds == 60)
        #expect(!configuration.logLevel.includesRequests)
    }

    @Test(arguments: ["listen=8080", "auto=webp,bmp", "recipes.allow=thumbnial:3", #"presets={"a":"@b"}"#])
    func `what does not fit ends the program before it listens`(_ assignment: String) {
        let failure = #expect(throws: SettingErrors.self) { _ = try read([assignment]) }
        #expect(failure.flatMap { CommandFailure($0) }?.exit == .usage)
    }

    @Test(arguments: [
        (["recipes.presetsOnly=true"], "there are no presets"),
        (["recipes.steps=thumbnial"], "did you mean `thumbnail`"),
        (["recipes.suffixes=dpr:2,wepb"], "did you mean `webp`"), (["recipes.suffixes=dpr"], "dpr"),
        (["sizes.strict=true"], "requires `sizes.steps`"), (["sizes.steps=[0]"], "sizes.steps"),
        (["sizes.steps=[]"], "sizes.steps"),
        ([#"baseURLs={"http":"https://a.test"}"#], "is not a valid name for a base URL"),
        ([#"baseURLs={"a":"https://u:geheim@a.test"}"#], "without credentials"),
        ([#"baseURLs={"a":"ftp://a.test"}"#], "`a` must be an http, https, s3 or file URL"),
        ([#"baseURLs={"a":"file:///nowhere"}"#], "`a`: /nowhere: No such file or directory"),
        (["server.fallback=/nowhere"], "/nowhere"),
        (["server.fallback=/etc/hostname"], "server.fallback"), (["keysFile=/nowhere"], "/nowhere"),
        ([#"keys={"a b":"00112233445566778899aabbccddeeff"}"#], "the name of a key"),
        ([#"keys={"a":"geheim00"}"#], "hexadecimal"), ([#"keys={"a":"00112233445566778899aabbccddee"}"#], "15 bytes"),
        ([#"keys={"a":12}"#], "in quotes"),
    ])
    func `what says who may use the server and does not fit is refused, and no secret shown`(
        _ assignments: [String], _ words: String
    ) throws {
        let message = try #require(throws: SettingErrors.self) { _ = try read(assignments) }.description
        #expect(message.contains(words) && !message.contains("geheim") && !message.contains("0011"), "\(message)")
    }

    @Test func `keys come from the settings and from a file, each once`() throws {
        let folder = ScratchFolder()
        let file = folder.write(
            "# ours\n\nold: 00112233445566778899aabbccddeeff\n web:\tFFEEDDCCBBAA99887766554433221100 \n", to: "k")
        let key = #"keys={"new":"00112233445566778899aabbccddeeff"}"#
        #expect(try read([key, "keysFile=\(file)"]).site.signature.keys.map(\.id) == ["new", "old", "web"])
        for text in ["new: 00112233445566778899aabbccddeeff", "x", "x: 00", "x: geheim"] {
            let failure = #expect(throws: SettingErrors.self) {
                _ = try read([key, "keysFile=\(folder.write("\n" + text, to: "k"))"])
            }
            #expect(failure?.description.contains("/k, line 2: ") == true && failure?.all.count == 1)
            #expect(failure?.description.contains("geheim") == false)
        }
    }

    @Test func `sizes are the usual ones or a list`() throws {
        #expect(try read(["sizes.steps=true"]).site.recipes.sizes == RecipeRules.usualSizes)
        #expect(try read(["sizes.steps=false"]).site.recipes.sizes.isEmpty)
        #expect(try read(["sizes.steps=300,100,100"]).site.recipes.sizes == [300, 100, 100])
        #expect(try read(["sizes.steps=[7]", "sizes.strict=true"]).site.recipes.refusesOtherSizes)
        var errors = SettingErrors()
        let found = SettingsFile.parse("sizes:\n  steps: [20, 40]\n", path: "c.yaml", &errors)
        #expect(errors.isEmpty && found.map(\.entry.value) == [.list([.int(20), .int(40)])])
    }

    @Test func `a server without keys does not start where others can connect, and one that checks nothing says so`()
        throws
    {
        let folder = ScratchFolder()
        let empty = folder.write("# none\n", to: "k")
        for closed in ["listen=0.0.0.0:80", "listen=unix:/s", "allowUnsigned=false", "keysFile=\(empty)", "keys={}"] {
            let refused = try #require(throws: SettingErrors.self) { try Settings(assignments: [closed]).serving() }
            #expect(refused.lines.count == 1 && refused.description.hasPrefix("the server has no keys"), "\(closed)")
        }
        func warnings(_ assignments: [String]) throws -> [String] {
            let (configuration, site) = try read(assignments)
            return AccessNotice.warnings(site, configuration)
        }
        let (bare, site) = try Settings().serving()
        let told = AccessNotice.warnings(site, bare)
        #expect(told.map { $0.contains("only direct connections from this machine") } == [true])
        let key = #"keys={"a":"00112233445566778899aabbccddeeff"}"#
        #expect(try warnings([key, "listen=0.0.0.0:80"]).isEmpty && warnings(["allowUnsigned=true"]).isEmpty)
        #expect(try warnings([key, "allowUnsigned=true"]).count == 1)
        for address in ["0.0.0.0:80", "[::]:80", "192.0.2.1:80"] {
            #expect(try warnings(["allowUnsigned=true", "listen=\(address)"]).count == 1)
            #expect(try warnings(["allowUnsigned=true", "listen=\(address)", "sources.allow=a.test"]).isEmpty)
        }
    }

    @Test func `what is open follows from the other settings, and what is opened beside them is warned of`() throws {
        func open(_ assignments: String...) throws -> (Set<ImageRoute>, page: Bool, warnings: [String]) {
            let (configuration, site) = try read(assignments)
            return (site.openRoutes, site.playground, AccessNotice.warnings(site, configuration))
        }
        let card = #"presets={"card":"circle"}"#
        let key = #"keys={"a":"00112233445566778899aabbccddeeff"}"#
        let everything = Set(ImageRoute.allCases)
        for unrestricted in ["sizes.steps=true", "allowUnsigned=true", key] {
            #expect(try open(unrestricted).0 == everything, "\(unrestricted)")
        }
        for restricted in [
            "recipes.presetsOnly=true", "recipes.allow=circle", "recipes.steps=circle", "recipes.watermark=circle",
        ] {
            let closed = try open(card, "allowUnsigned=true", restricted)
            // Steps that clients write before a watermark can move it.
            let more = restricted.contains("watermark") ? 1 : 0
            #expect(closed.0 == [.variant] && !closed.page && closed.warnings.count == more, "\(restricted)")
            #expect(try open(card, key, restricted).0 == [.variant])
            let opened = try open(card, "allowUnsigned=true", restricted, "server.routes=variant,original,info")
            #expect(opened.0 == everything && opened.page)
            #expect(opened.warnings.count == 1 + more && opened.warnings[0].contains("server.routes"))
            #expect(try open(card, key, restricted, "server.routes=variant,original").warnings.isEmpty)
        }
        #expect(try open("server.routes=variant", "server.playground=true").warnings.count == 1)
        for (refused, words) in [("[]", "at least one"), ("variants,info", "not `variants`")] {
            let error = #expect(throws: SettingErrors.self) { _ = try read(["server.routes=" + refused]) }
            #expect(error?.description.contains(words) == true)
        }
    }

    @Test func `grammars are checked before the server listens, and decide who is served`() throws {
        let next = #"grammars={"next":{"path":"/_next/image","unsigned":true}}"#
        let (configuration, site) = try Settings.collected(assignments: [next]).serving()
        #expect(site.grammars.keys.sorted() == ["next"] && !site.signature.servesThisMachine && !site.playground)
        #expect(AccessNotice.warnings(site, configuration).map { $0.contains("through /_next/image") } == [true])
        #expect(
            try AccessNotice.warnings(read([next, "sources.allow=a.test"]).site, read(["sources.allow=a.test"]).0)
                .isEmpty)
        for (value, words) in [
            (#"{"next":{"path":"/"}}"#, "next: path: "), (#"{"nuxt":{"path":"/a"}}"#, "nuxt: unknown system"),
            (#"{"next":{"path":"/a","manifest":"/none.json"}}"#, "next: manifest: /none.json"),
            (#"{"next":1}"#, "next: expected a map"),
            (#"{"imgproxy":{"path":"/a","keys":[{"key":12,"salt":"00"}]}}"#, "in quotes"),
        ] {
            let error = #expect(throws: SettingErrors.self) { _ = try read(["grammars=" + value]) }
            #expect(error?.description.contains(words) == true, "\(error?.description ?? "")")
        }
    }

    @Test func `the log is for those who ask`() throws {
        #expect(try read(["log.level=info"]).0.logLevel.includesRequests)
        #expect(try !read(["log.level=warning"]).0.logLevel.includesRequests)
    }
}
