import PipelineSupport
import Glibc
import Pipeline
import TestSupport
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
        let fetch = try settings.configuration().pipeline.fetch
        #expect(fetch.maxConcurrentTransfers == 7 && fetch.maxConcurrentTransfersPerHost == 9)
        #expect(fetch.maxRetries == 5 && fetch.maxRedirects == 10)
        #expect(settings.origin("retries") == .file(file, line: 4))
    }

    @Test func `a server has one worker more than processors, other commands have as many`() throws {
        let processors = Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        #expect(try Settings().configuration().workers.maxConcurrentRenders == processors)
        // nil is the library's default, one more than processors.
        #expect(try Settings().configuration(serves: true).workers.maxConcurrentRenders == nil)
        let settings = try Settings(assignments: ["render.workers=7"])
        for serves in [false, true] {
            let configuration = try settings.configuration(serves: serves).pipelineConfiguration()
            #expect(configuration.rendering.maxConcurrentRenders == 7)
            guard case .workers(let workers) = configuration.rendering.isolation else {
                Issue.record("no workers"); return
            }
            #expect(workers.maxConcurrentRenders == 7)
        }
    }

    @Test func `an unknown key names the nearest one`() {
        let error = #expect(throws: SettingErrors.self) { _ = try Settings(assignments: ["fetch.slot=7"]) }
        #expect(error?.all.map(\.code) == [.unknownKey])
        #expect(error?.description.contains("did you mean `fetch.slots`?") == true)
        let variable = #expect(throws: SettingErrors.self) {
            _ = try Settings(environment: ["PIPECTL_FETCH_SLOT": "7"])
        }
        #expect(variable?.description.contains("PIPECTL_FETCH_SLOTS") == true)
    }

    @Test func `an unknown key in a file names file and line`() {
        let folder = ScratchFolder()
        let file = folder.write("retries: 1\nfetch:\n  slotz: 3\n", to: "c.yaml")
        let error = #expect(throws: SettingErrors.self) { _ = try Settings(file: file) }
        #expect(error?.description.hasPrefix("\(file), line 3: ") == true)
        #expect(error?.description.contains("`fetch.slots`") == true)
    }

    @Test(arguments: [
        "fetch.slots=x", "fetch.slots=0", "fetch.slots=1.5", "private=maybe", "render.quality=super",
        "disk.originals=12XB", "memory.variants=101%", "presets=card", "retries", "=3", "limits.bytes=-1",
        "limits.seconds=NaN", "limits.profileBytes=many", "hosts=[1]",
    ])
    func `a value that does not fit is refused`(_ assignment: String) {
        #expect(throws: SettingErrors.self) { _ = try Settings(assignments: [assignment]) }
    }

    @Test func `a secret never shows in an error`() {
        let error = #expect(throws: SettingErrors.self) { _ = try Settings(assignments: ["hosts=topsecret"]) }
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
        let names = Dictionary(uniqueKeysWithValues: SettingCatalog.all.map { ($0.key, $0.environmentName) })
        #expect(names["allowPrivateAddresses"] == "PIPECTL_ALLOW_PRIVATE_ADDRESSES")
        #expect(names["fetch.perHost"] == "PIPECTL_FETCH_PER_HOST" && names["baseURLs"] == "PIPECTL_BASE_URLS")
        #expect(names["fetch.http2"] == "PIPECTL_FETCH_HTTP2")
        #expect(Set(names.values).count == names.count)
    }

    @Test(arguments: ["server.tls", "server.http2"])
    func `a setting that was removed says what to do instead, wherever it stands`(key: String) {
        for read in [
            { try Settings(assignments: ["\(key)=1"]) },
            { try Settings(environment: [Setting.environmentName(of: key): "1"]) },
        ] as [() throws -> Settings] {
            let error = #expect(throws: SettingErrors.self) { _ = try read() }
            let told = error.map { "\($0)" } ?? ""
            #expect(told.contains("`\(key)` has been removed") && told.contains("nginx"), "\(told)")
        }
    }

    @Test func `limits arrive in the configuration, by the names that errors call them`() throws {
        let names = ["pixels", "bytes", "frames", "scans", "outputEdge", "profileBytes", "seconds", "encodeSeconds"]
        let settings = try Settings(assignments: names.enumerated().map { "limits.\($1)=\(100 + $0)" })
        let limits = try settings.configuration().pipeline.rendering.limits
        #expect(
            [
                limits.pixels, limits.bytes, limits.frames, limits.scans, limits.outputEdge, limits.profileBytes,
                Int(limits.timeout.inSeconds), Int(limits.encodeTimeout.inSeconds),
            ] == Array(100..<108))
        #expect(try Settings().configuration(serves: true).pipeline.rendering.limits == RenderLimits())
        var patient = RenderLimits()
        (patient.timeout, patient.encodeTimeout) = (.seconds(60), .seconds(60))
        (patient.pixels, patient.bytes) = (500_000_000, 1_000_000_000)
        #expect(try Settings().configuration().pipeline.rendering.limits == patient)
        // The first two are spans, which settings have in seconds; the others are no limits, and have settings of other names.
        let others = ["timeout", "encodeTimeout", "formats", "acceptsDamaged", "svg"]
        #expect(
            Mirror(reflecting: limits).children.compactMap(\.label).sorted() == (names.dropLast(2) + others).sorted())
    }

    @Test func `encoders try harder in all commands but serve`() throws {
        #expect(try Settings().configuration(serves: true).pipeline.rendering.effort == .quick)
        #expect(try Settings().configuration().pipeline.rendering.effort == .thorough)
        #expect(try Settings(assignments: ["render.effort=quick"]).configuration().pipeline.rendering.effort == .quick)
    }

    @Test func `the server's defaults are the library's but for the isolation, which the table says`() throws {
        let command = try Settings(environment: ["HOME": "/h"]).configuration(serves: true).pipelineConfiguration()
        let library = PipelineConfiguration()
        #expect(
            command.disk == library.disk && command.memory == library.memory
                && command.rendering.quality == library.rendering.quality)
        #expect(command.rendering.effort == library.rendering.effort)
        #expect(command.acceptedTypes == library.acceptedTypes && command.rendering.limits == library.rendering.limits)
        #expect(command.caching == library.caching && command.fetch == library.fetch)
        guard case .inProcess = library.rendering.isolation, case .workers(let workers) = command.rendering.isolation
        else {
            Issue.record("the table says: workers, in the library inProcess")
            return
        }
        #expect(
            workers.memory == WorkerConfiguration().memory
                && workers.maxConcurrentRenders == WorkerConfiguration().maxConcurrentRenders)
    }

    @Test func `memory for records follows that for originals unless it is set`() throws {
        let follows = try Settings(assignments: ["memory.originals=50MB"]).configuration().pipeline.memory
        #expect(follows.originals == 50_000_000 && follows.records == 5_000_000 && follows.variants == 2_000_000)
        let own = try Settings(assignments: ["memory.originals=50MB", "memory.records=1MB"]).configuration(serves: true)
        #expect(own.pipeline.memory.records == 1_000_000)
    }

    @Test func `every default fits its own kind`() {
        for setting in SettingCatalog.all { #expect(setting.kind.accept(setting.fallback) != nil, "\(setting.key)") }
    }

    @Test func `private addresses are none, all or a list`() throws {
        func rule(_ assignment: String...) throws -> AddressRule {
            try Settings(assignments: assignment).configuration().pipeline.fetch.allowPrivateAddresses
        }
        #expect(try rule() == .publicOnly)
        #expect(try rule("allowPrivateAddresses=true") == .all)
        #expect(
            try rule("allowPrivateAddresses=127.0.0.1:8080,10.0.0.0/8")
                == AddressRule(["127.0.0.1:8080", "10.0.0.0/8"]))
        #expect(try rule(#"allowPrivateAddresses=["::1"]"#) == AddressRule(["::1"]))
    }

    @Test func `relative paths in a settings file are relative to it, those of flags are not`() throws {
        let folder = ScratchFolder()
        folder.write("", to: "settings/ca.pem")
        let file = folder.write(
            "cache: here\nmasks: /masks\noverlays: ~/overlays\nhosts:\n  https://h: {ca: ca.pem}\n",
            to: "settings/c.yaml")
        let settings = try Settings(environment: ["HOME": "/home/a"], file: file)
        #expect(settings.cacheFolder == folder("settings/here"))
        let pipeline = try settings.configuration().pipeline
        #expect(pipeline.rendering.masks == "/masks" && pipeline.rendering.overlays == "/home/a/overlays")
        #expect(pipeline.fetch.hosts.values.first?.authoritiesFile == folder("settings/ca.pem"))
        let flag = try Settings(flags: [("--cache", "cache", "there")], file: file)
        #expect(flag.cacheFolder == "there")
    }

    @Test func `a map is set as a whole and its names are free`() throws {
        let folder = ScratchFolder()
        let file = folder.write(
            "presets:\n  card: thumbnail:300\n  retries: circle\nallowPrivateAddresses: [127.0.0.1]\n"
                + "disk.originals: 10MB\nmasks: 1234\nretries: 0\n", to: "c.yaml")
        let settings = try Settings(file: file)
        let configuration = try settings.configuration()
        #expect(configuration.presets == ["card": "thumbnail:300", "retries": "circle"])
        #expect(configuration.pipeline.disk.originals == 10_000_000 && configuration.pipeline.disk.freeSpace == nil)
        #expect(configuration.pipeline.rendering.masks == folder("1234"))
        #expect(
            try configuration.pipeline.fetch.allowPrivateAddresses
                == AddressRule(["127.0.0.1"]))
        let floor = try Settings(assignments: ["disk.freeSpace=0"]).configuration()
        #expect(floor.pipeline.disk.freeSpace == 0)
        let replaced = try Settings(assignments: [#"presets={"tiny":"thumbnail:32"}"#], file: file).configuration()
        #expect(replaced.presets == ["tiny": "thumbnail:32"])
    }

    @Test(arguments: ["- a\n", "a: [1\n", "retries: 1\nretries: 2\n", "retries:\n"])
    func `a broken file is an error that names it`(_ text: String) {
        let folder = ScratchFolder()
        let file = folder.write(text, to: "c.yaml")
        let error = #expect(throws: SettingErrors.self) { _ = try Settings(file: file) }
        #expect(error?.description.contains(file) == true)
    }

    @Test func `an empty file sets nothing and a missing one is an error`() throws {
        let folder = ScratchFolder()
        #expect(try Settings(file: folder.write("# nothing\n", to: "c.yaml")).entries.isEmpty)
        #expect(throws: SettingErrors.self) { _ = try Settings(file: folder("absent.yaml")) }
    }

    @Test func `the cache folder follows the XDG rules`() throws {
        #expect(try Settings(environment: ["XDG_CACHE_HOME": "/x", "HOME": "/h"]).cacheFolder == "/x/image-pipeline")
        #expect(
            try Settings(environment: ["XDG_CACHE_HOME": "x", "HOME": "/h"]).cacheFolder == "/h/.cache/image-pipeline")
        let flag = try Settings(flags: [("--cache", "cache", "/c")], environment: ["PIPECTL_CACHE": "/e"])
        #expect(flag.cacheFolder == "/c")
        #expect(try Settings(assignments: ["cache=~/c"], environment: ["HOME": "/h"]).cacheFolder == "/h/c")
    }

    @Test func `a share is of the memory, or of the cache folder's file system`() throws {
        let configuration = try Settings(
            assignments: ["memory.variants=50%", "disk.variants=50%", "cache=/tmp"]
        ).configuration().pipeline
        #expect(configuration.memory.variants == MachineMemory.bytes / 2)
        var status = statvfs()
        #expect(statvfs("/tmp", &status) == 0)
        #expect(configuration.disk.variants == Int(status.f_blocks) * Int(status.f_frsize) / 2)
    }

    @Test func `s3 takes a store and single buckets, and says what is wrong without a secret`() throws {
        let s3 = try Settings(assignments: [
            #"s3={"endpoint":"http://10.0.0.5:9000","accessKey":"A","secretKey":"hush","buckets":{"Public":{"anonymous":true}}}"#
        ]).configuration().pipeline.s3
        #expect(s3.store.endpoint == "http://10.0.0.5:9000" && s3.store.credentials == .key(id: "A", secret: "hush"))
        #expect(s3.buckets["public"]?.credentials == .anonymous)
        let paid = try Settings(assignments: [#"s3={"buckets":{"a":{"headers":{"x-amz-request-payer":"requester"}}}}"#])
            .configuration().pipeline.s3
        #expect(paid.buckets["a"]?.fields == [HeaderField("x-amz-request-payer", "requester")])
        for (text, said) in [
            (#"{"accessKey":"A"}"#, "both accessKey and secretKey"), (#"{"endpoint":"s3.test"}"#, "https://HOST"),
            (#"{"endpoint":"https://s3.test/bucket"}"#, "https://HOST"), (#"{"regoin":"eu"}"#, "region"),
            (#"{"secretKey":["hush"]}"#, "expected text"), (#"{"buckets":{"a":1}}"#, "expected a map"),
            (#"{"headers":{"Host":"hush"}}"#, "cannot be set as a header field"), (#"{"headers":["hush"]}"#, "a map"),
            (#"{"secretKeyFile":"/nowhere","accessKey":"A"}"#, "/nowhere"), (#"{"instance":"yes"}"#, "true or false"),
        ] {
            let error = #expect(throws: SettingErrors.self) {
                _ = try Settings(assignments: ["s3=" + text]).configuration()
            }
            #expect("\(error.map { "\($0)" } ?? "")".contains(said), "\(text)")
            #expect(!"\(error.map { "\($0)" } ?? "")".contains("hush"))
        }
    }

    @Test func `sizes are shown in the largest unit that divides them`() {
        let sizes = [4_000_000_000, 1 << 30, 50_000_000, 4 << 20, 16_384, 3000, 17]
        #expect(sizes.map(SettingSize.text) == ["4GB", "1GiB", "50MB", "4MiB", "16KiB", "3kB", "17"])
        for bytes in sizes { #expect(SettingSize(SettingSize.text(bytes)) == .bytes(bytes)) }
    }
}

/// No setting is without effect: what is set is what the configuration holds, and nothing else changes.
@Suite struct SettingEffectsTests {
    /// Values beside the defaults, for settings of a kind without an example.
    private static let values: [String: String] = [
        "cache": "/tmp", "presets": #"{"a":"circle"}"#, "masks": "/m", "overlays": "/o", "sources.allow": "a.test",
        "sources.deny": "b.test", "allowPrivateAddresses": "true", "acceptedTypes": "image/png",
        "s3": #"{"endpoint":"https://s3.test","maxAge":60,"buckets":{"a":{"region":"eu"}}}"#,
        "remote.s3": #"{"bucket":"cache","prefix":"one","region":"eu"}"#,
        "fleet.redis": "redis://redis.test:6379", "queue": "redis://redis.test:6379",
        "queueKey": "0123456789abcdef",
        "fetch.breaker": "false", "hosts": #"{"https://a.test:443":null}"#, "decoders": "png", "svg": "refuse",
        "listen": "[::1]:1",
        "auto": "avif", "recipes.allow": "circle", "forwardFields": "accept", "forwardMethods": "POST",
        "adminToken": "0123456789abcdef", "server.adminListen": "[::1]:2", "grammars": #"{"a":{"path":"/b"}}"#,
        "server.cors": "https://a.test",
        "server.trustedProxies": "10.0.0.0/8",
        "memory.originals": "7%", "memory.records": "7%", "memory.variants": "7%", "keys": #"{"a":null}"#,
        "keysFile": "/k", "baseURLs": #"{"a":"https://a.test"}"#, "recipes.steps": "circle", "sizes.steps": "[20,40]",
        "server.fallback": "/f.png", "libvips": "/v.so", "fetch.userAgent": "agent/1",
        "fetch.proxy": "http://p.test:3128", "outputs": "jpeg:81:progressive",
        "secondPass.cpu": "0.5", "secondPass.after": "7", "secondPass.maxAge": "60",
        "defaultBase": "a", "recipes.watermark": "circle", "server.routes": "variant", "recipes.suffixes": "webp",
        "server.fields": #"{"X-Served-By":"us"}"#,
        "server.referrers": "a.test", "server.mountPoint": "/images", "server.fallbackStatus": "200",
        "server.cacheControl":
            #"{"maxAge":60,"staleWhileRevalidate":9,"immutable":false,"presets":{"a":"#
            + #"{"maxAge":0,"staleWhileRevalidate":0,"immutable":true}}}"#,
    ]
    /// The values for the secret `null`s above.
    private static let secrets = ["hosts": "{}", "keys": #""00112233445566778899aabbccddeeff""#]

    private static func value(_ setting: Setting) throws -> String {
        if let value = values[setting.key] { return value }
        switch (setting.kind, setting.fallback) {
        case (.bool, .bool(let value)): return value ? "false" : "true"
        case (.integer(let range), .int(let value)): return String(value == range.lowerBound ? value + 1 : value - 1)
        case (.number, .double(let value)): return String(value + 1)
        case (.size, _): return "123MB"
        case (.choice(let words), .string(let value)): return try #require(words.first { $0 != value })
        default:
            Issue.record("`\(setting.key)` has no value to try; add one to `values`")
            return ""
        }
    }

    @Test(arguments: SettingCatalog.all.map(\.key)) func `a setting reaches the configuration, alone`(
        key: String
    ) throws {
        let setting = try SettingCatalog.setting(key, .builtIn)
        let text = try Self.value(setting)
        let given = try Settings(
            assignments: [key + "=" + text.replacing(":null", with: ":" + (Self.secrets[key] ?? "null"))])
        let (set, unset) = (try given.configuration(serves: true), try Settings().configuration(serves: true))
        let isHidden = ["adminToken", "queueKey"].contains(key)
        // Members of maps may be secret, so none is shown.
        if case .object = setting.fallback {
            #expect(setting.value(set) != setting.value(unset))
        } else {
            let expected = isHidden ? .string("(secret)") : try #require(setting.kind.read(text))
            #expect(setting.value(set) == expected && setting.value(unset) != expected)
        }
        for other in SettingCatalog.all where other.key != key {
            if key == "memory.originals", other.key == "memory.records" { continue }
            #expect(other.value(set) == other.value(unset), "`\(key)` changes `\(other.key)`")
        }
    }

    @Test func `only the settings that say so have another default in commands besides serve`() throws {
        let (commands, serve) = (try Settings().configuration(), try Settings().configuration(serves: true))
        for setting in SettingCatalog.all {
            #expect(
                (setting.value(commands) != setting.value(serve)) == (setting.differingDefault?.fill != nil),
                "\(setting.key)")
        }
    }

    @Test func `cache commands read the disk settings that a pipeline is made with, and no others`() throws {
        let settings = try Settings(assignments: [
            "disk.fsync=true", "disk.originals=3GB", "disk.variants=1GB", "disk.freeSpace=0", #"hosts={"a/b":{}}"#,
        ])
        #expect(throws: SettingErrors.self) { _ = try settings.configuration() }
        let disk = try settings.configuration(only: ["disk."]).pipeline.disk
        #expect(disk.fsync && disk.originals == 3_000_000_000 && disk.variants == 1_000_000_000 && disk.freeSpace == 0)
    }
}

@Suite struct JSONValueTests {
    @Test func `all kinds of values are read`() throws {
        let value = try JSONParser.parse(#" {"a":[1,-2.5,1e-3,true,null],"b":"\u00e9\ud83d\ude00\n\/","c":{}} "#)
        #expect(value["a"] == .list([.int(1), .double(-2.5), .double(0.001), .bool(true), .null]))
        #expect(value["b"] == .string("é😀\n/"))
        #expect(try JSONParser.parse(value.json) == value)
    }

    @Test(arguments: [
        "", "{", "[1,]", "{\"a\":1,}", "01", "1.", "+1", ".5", "\"\\x\"", "\"\\ud800\"", "tru", "1 2", "\"a\nb\"",
        "nan",
        "{\"a\":1,\"a\":2}", "\"\\u+123\"", "1e999", "'a'",
    ])
    func `what is no JSON is refused`(_ text: String) {
        #expect(throws: JSONParser.Malformed.self) { _ = try JSONParser.parse(text) }
    }

    @Test func `deep nesting is an error, not a crash`() {
        #expect(throws: JSONParser.Malformed.self) { _ = try JSONParser.parse(String(repeating: "[", count: 100_000)) }
    }
}
