import Glibc
import Pipeline
import Testing
import Variants

@testable import pipectl

@Suite struct SettingsTests {
    @Test func `a flag wins over the environment, the file and the default`() throws {
        let folder = ScratchFolder()
        let file = folder.write("fetch:\n  slots: 3\n  perHost: 4\nretries: 5\n", to: "c.yaml")
        let settings = try Settings(
            assignments: ["fetch.slots=7"], environment: ["PIPECTL_FETCH_SLOTS": "5", "PIPECTL_FETCH_PER_HOST": "9"],
            file: file)
        #expect(settings.integer("fetch.slots") == 7)
        #expect(settings.integer("fetch.perHost") == 9)
        #expect(settings.integer("retries") == 5)
        #expect(settings.integer("fetch.redirects") == 3)
        #expect(settings.origin("retries") == .file(file, line: 4))
    }

    @Test func `a server has one worker more than processors, other commands have as many`() throws {
        let processors = try Settings().renderWorkers(serves: false)
        #expect(processors == max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        #expect(try Settings().renderWorkers(serves: true) == processors + 1)
        let settings = try Settings(assignments: ["render.workers=7"])
        for serves in [false, true] {
            let configuration = try PipelineSettings.configuration(settings, serves: serves)
            #expect(configuration.renderThreads == 7)
            guard case .workers(let workers) = configuration.isolation else { Issue.record("no workers"); return }
            #expect(workers.count == 7)
        }
        guard case .workers(let workers) = try PipelineSettings.configuration(Settings(), serves: true).isolation
        else { Issue.record("no workers"); return }
        #expect(workers.count == processors + 1)
    }

    @Test func `an unknown key names the nearest one`() {
        let error = #expect(throws: SettingError.self) { _ = try Settings(assignments: ["fetch.slot=7"]) }
        #expect(error?.code == .unknownKey)
        #expect(error?.message.contains("did you mean `fetch.slots`?") == true)
        let variable = #expect(throws: SettingError.self) {
            _ = try Settings(environment: ["PIPECTL_FETCH_SLOT": "7"])
        }
        #expect(variable?.description.contains("PIPECTL_FETCH_SLOTS") == true)
    }

    @Test func `an unknown key in a file names file and line`() {
        let folder = ScratchFolder()
        let file = folder.write("retries: 1\nfetch:\n  slotz: 3\n", to: "c.yaml")
        let error = #expect(throws: SettingError.self) { _ = try Settings(file: file) }
        #expect(error?.description.hasPrefix("\(file), line 3: ") == true)
        #expect(error?.message.contains("`fetch.slots`") == true)
    }

    @Test(arguments: [
        "fetch.slots=x", "fetch.slots=0", "fetch.slots=1.5", "private=maybe", "render.quality=super",
        "disk.originals=12XB", "memory.variants=101%", "presets=card", "retries", "=3", "limits.bytes=-1",
        "limits.seconds=NaN", "limits.profileBytes=many", "hosts=[1]",
    ])
    func `a value that does not fit is refused`(_ assignment: String) {
        #expect(throws: SettingError.self) { _ = try Settings(assignments: [assignment]) }
    }

    @Test func `a secret never shows in an error`() {
        let error = #expect(throws: SettingError.self) { _ = try Settings(assignments: ["hosts=topsecret"]) }
        #expect(error?.description.contains("topsecret") == false)
    }

    @Test(arguments: [
        ("512MB", 512_000_000), ("64KiB", 65_536), ("4096", 4096), ("1.5 GiB", 1_610_612_736), ("0", 0), ("10%", 100),
        ("20kb", 20_000),
    ])
    func `sizes take decimal and binary units and shares`(_ text: String, _ bytes: Int) {
        #expect(SettingSize(text)?.bytes(of: 1000) == bytes)
    }

    @Test(arguments: ["", "MB", "-1", "1..2", "5 apples", "1e3", "NaN", "99999999TB", ".5MB"])
    func `what is no size is refused`(_ text: String) { #expect(SettingSize(text) == nil) }

    @Test func `names become variables of the environment`() {
        let names = Dictionary(uniqueKeysWithValues: SettingCatalogue.all.map { ($0.key, $0.environmentName) })
        #expect(names["allowPrivateAddresses"] == "PIPECTL_ALLOW_PRIVATE_ADDRESSES")
        #expect(names["fetch.perHost"] == "PIPECTL_FETCH_PER_HOST")
        #expect(Set(names.values).count == names.count)
    }

    @Test func `limits arrive in the configuration, by the names that errors call them`() throws {
        let names = ["pixels", "bytes", "frames", "scans", "outputEdge", "profileBytes", "seconds", "encodeSeconds"]
        let settings = try Settings(assignments: names.enumerated().map { "limits.\($1)=\(100 + $0)" })
        let limits = try PipelineSettings.configuration(settings).limits
        #expect(
            [
                limits.pixels, limits.bytes, limits.frames, limits.scans, limits.outputEdge, limits.profileBytes,
                Int(limits.seconds), Int(limits.encodeSeconds),
            ] == Array(100..<108))
        #expect(try PipelineSettings.configuration(Settings(), serves: true).limits == RenderLimits())
        var patient = RenderLimits()
        patient.encodeSeconds = 60
        #expect(try PipelineSettings.configuration(Settings()).limits == patient)
        #expect(Mirror(reflecting: limits).children.compactMap(\.label).sorted() == (names + ["formats"]).sorted())
    }

    @Test func `the command's defaults are the library's, but for those that the table says`() throws {
        let (command, library) = (try PipelineSettings.configuration(Settings(), serves: true), PipelineConfiguration())
        #expect(command.disk == library.disk && command.fsync == library.fsync)
        #expect(command.freeSpace == library.freeSpace && command.quality == library.quality)
        #expect(command.acceptedTypes.filter { !$0.isEmpty } == library.acceptedTypes)
        #expect(command.limits == library.limits)
        #expect(command.caching == library.caching)
        let (asked, given) = (command.fetch, library.fetch)
        #expect(asked.slots == given.slots && asked.perHost == given.perHost && asked.retries == given.retries)
        #expect(asked.connectSeconds == given.connectSeconds && asked.headerSeconds == given.headerSeconds)
        #expect(asked.totalSeconds == given.totalSeconds && asked.stallSeconds == given.stallSeconds)
        #expect(asked.redirects == given.redirects && asked.http2 == given.http2 && asked.rate == given.rate)
        #expect(asked.breaker == given.breaker && asked.byteLimit == given.byteLimit)
        let memory = try Settings().memoryBudgets
        #expect(
            abs(memory.originals - library.memory.originals) < 10 && abs(memory.variants - library.memory.variants) < 10
        )
    }

    @Test func `every default fits its own kind`() {
        for setting in SettingCatalogue.all { #expect(setting.kind.accept(setting.fallback) != nil, "\(setting.key)") }
    }

    @Test func `private addresses are none, all or a list`() throws {
        #expect(try Settings().allowPrivateAddresses == PrivateAddresses.none)
        #expect(try Settings(assignments: ["allowPrivateAddresses=true"]).allowPrivateAddresses == .all)
        let listed = try Settings(assignments: ["allowPrivateAddresses=127.0.0.1:8080,10.0.0.0/8"])
        #expect(listed.allowPrivateAddresses == .list(["127.0.0.1:8080", "10.0.0.0/8"]))
        let json = try Settings(assignments: [#"allowPrivateAddresses=["::1"]"#])
        #expect(json.allowPrivateAddresses == .list(["::1"]))
    }

    @Test func `relative paths in a settings file are relative to it, those of flags are not`() throws {
        let folder = ScratchFolder()
        folder.write("", to: "settings/ca.pem")
        let file = folder.write(
            "cache: here\nmasks: /masks\noverlays: ~/overlays\nhosts:\n  https://h: {ca: ca.pem}\n",
            to: "settings/c.yaml")
        let settings = try Settings(environment: ["HOME": "/home/a"], file: file)
        #expect(settings.cacheFolder == folder("settings/here"))
        #expect(settings.masksFolder == "/masks" && settings.overlaysFolder == "/home/a/overlays")
        var fetch = FetchConfiguration()
        try settings.apply(to: &fetch)
        #expect(fetch.hosts.values.first?.authoritiesFile == folder("settings/ca.pem"))
        let flag = try Settings(flags: [("--cache", "cache", "there")], file: file)
        #expect(flag.cacheFolder == "there")
    }

    @Test func `a map is set as a whole and its names are free`() throws {
        let folder = ScratchFolder()
        let file = folder.write(
            "presets:\n  card: thumbnail:300\n  fetch.x: circle\nallowPrivateAddresses: [127.0.0.1]\n"
                + "disk.originals: 10MB\nmasks: 1234\nretries: 0\n", to: "c.yaml")
        let settings = try Settings(file: file)
        #expect(settings.presets == ["card": "thumbnail:300", "fetch.x": "circle"])
        #expect(settings.diskBudgets(folder: "/").originals == 10_000_000)
        #expect(settings.diskBudgets(folder: "/").freeSpace == nil)
        let floor = try Settings(assignments: ["disk.freeSpace=0"])
        #expect(floor.diskBudgets(folder: "/").freeSpace == 0)
        #expect(settings.text("masks") == "1234")
        #expect(settings.allowPrivateAddresses == .list(["127.0.0.1"]))
        let replaced = try Settings(assignments: [#"presets={"tiny":"thumbnail:32"}"#], file: file)
        #expect(replaced.presets == ["tiny": "thumbnail:32"])
    }

    @Test(arguments: ["- a\n", "a: [1\n", "retries: 1\nretries: 2\n", "retries:\n"])
    func `a broken file is an error that names it`(_ text: String) {
        let folder = ScratchFolder()
        let file = folder.write(text, to: "c.yaml")
        let error = #expect(throws: SettingError.self) { _ = try Settings(file: file) }
        #expect(error?.description.contains(file) == true)
    }

    @Test func `an empty file sets nothing and a missing one is an error`() throws {
        let folder = ScratchFolder()
        #expect(try Settings(file: folder.write("# nothing\n", to: "c.yaml")).entries.isEmpty)
        #expect(throws: SettingError.self) { _ = try Settings(file: folder("absent.yaml")) }
    }

    @Test func `the cache folder follows the XDG rules`() throws {
        #expect(try Settings(environment: ["XDG_CACHE_HOME": "/x", "HOME": "/h"]).cacheFolder == "/x/image-pipeline")
        #expect(
            try Settings(environment: ["XDG_CACHE_HOME": "x", "HOME": "/h"]).cacheFolder == "/h/.cache/image-pipeline")
        let flag = try Settings(flags: [("--cache", "cache", "/c")], environment: ["PIPECTL_CACHE": "/e"])
        #expect(flag.cacheFolder == "/c")
        #expect(try Settings(assignments: ["cache=~/c"], environment: ["HOME": "/h"]).cacheFolder == "/h/c")
    }

    @Test func `memory budgets are bytes`() throws {
        let budgets = try Settings(assignments: ["memory.variants=1MB"]).memoryBudgets
        #expect(budgets.variants == 1_000_000)
        #expect(budgets.originals > 0)
        #expect(budgets.pixels == 0)
    }

    @Test func `the process's own environment is readable`() { #expect(ProcessEnvironment.all()["PATH"] != nil) }
}

@Suite struct JSONReaderTests {
    @Test func `all kinds of values are read`() throws {
        let value = try JSONReader.parse(#" {"a":[1,-2.5,1e-3,true,null],"b":"\u00e9\ud83d\ude00\n\/","c":{}} "#)
        #expect(value["a"] == .list([.int(1), .double(-2.5), .double(0.001), .bool(true), .null]))
        #expect(value["b"] == .string("é😀\n/"))
        #expect(try JSONReader.parse(value.json) == value)
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\":1,}", "01", "1.", "+1", ".5", "\"\\x\"", "\"\\ud800\"", "tru", "1 2", "\"a\nb\"",
        "nan",
        "{\"a\":1,\"a\":2}", "\"\\u+123\"", "1e999", "'a'",
    ])
    func `what is no JSON is refused`(_ text: String) {
        #expect(throws: JSONError.self) { _ = try JSONReader.parse(text) }
    }

    @Test func `deep nesting is an error, not a crash`() {
        #expect(throws: JSONError.self) { _ = try JSONReader.parse(String(repeating: "[", count: 100_000)) }
    }
}
