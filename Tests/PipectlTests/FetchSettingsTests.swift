import Pipeline
import TestSupport
import Testing

@testable import pipectl

/// The fetch configuration that assignments lead to.
private func fetch(_ assignments: String...) throws -> FetchConfiguration {
    try Settings(assignments: assignments).configuration().pipeline.fetch
}

@Suite struct FetchSettingsTests {
    @Test func `patterns of sources admit and refuse`() throws {
        let fetch = try fetch("sources.allow=*.example.org,http://a.test:8080/img", #"sources.deny=["b.example.org"]"#)
        #expect(fetch.sources.allow.map(\.description) == ["*.example.org", "http://a.test:8080/img"])
        #expect(fetch.sources.refusal(of: try SourceURL("http://a.example.org/")) == nil)
        #expect(fetch.sources.refusal(of: try SourceURL("http://b.example.org/")) != nil)
        #expect(fetch.sources.refusal(of: try SourceURL("http://c.test/")) != nil)
    }

    @Test func `the breaker is on, off, or has numbers of its own`() throws {
        #expect(try fetch().breaker == BreakerConfiguration())
        #expect(try fetch("fetch.breaker=true").breaker == BreakerConfiguration())
        #expect(try fetch("fetch.breaker=false").breaker == nil)
        let own = try fetch(#"fetch.breaker={"failures":3,"seconds":1.5}"#).breaker
        #expect(own?.failures == 3 && own?.pause == .milliseconds(1_500))
    }

    @Test func `rate, retries and private addresses arrive`() throws {
        let fetch = try fetch("fetch.rate=2.5", "retries=0", "allowPrivateAddresses=127.0.0.1:8080,fd00::/8")
        #expect(fetch.maxRequestsPerSecond == 2.5 && fetch.maxRetries == 0)
        #expect(
            try fetch.allowPrivateAddresses == AddressRule(["127.0.0.1:8080", "fd00::/8"]))
    }

    @Test func `a proxy is set without showing its password`() throws {
        #expect(try fetch().proxy == nil && fetch("fetch.proxy=").proxy == nil)
        let proxy = try #require(try fetch("fetch.proxy=http://us:geheim@p.test:3128").proxy)
        #expect("\(proxy)" == "http://p.test:3128")
        #expect(!"\(String(reflecting: proxy))".contains("geheim"))
    }

    @Test func `hosts have headers, credentials, authorities`() throws {
        let folder = ScratchFolder()
        let ca = folder.write("", to: "ca.pem")
        let hosts = try fetch(
            #"hosts={"a.test":{"headers":{"X-Key":"k","X-Number":7},"basic":"us:p:w","ca":"\#(ca)"},"#
                + #""http://b.test:8080":{"bearer":"t","insecure":true,"trace":true}}"#
        ).hosts
        let a = try #require(hosts[try HostOrigin("https://a.test")])
        #expect(a.fields == [HeaderField("X-Key", "k"), HeaderField("X-Number", "7")])
        #expect(a.authorization == "Basic dXM6cDp3" && a.authoritiesFile == ca && !a.isInsecure)
        let own = #"{"a.test":{"freshness":{"atLeast":60,"atMost":600,"ignore":["no-store","private"]}}}"#
        let fresh = try #require(try fetch("hosts=" + own).hosts.values.first)
        #expect(fresh.minFreshness == .seconds(60) && fresh.maxFreshness == .seconds(600))
        #expect(fresh.ignoredDirectives == ["no-store", "private"] && a.minFreshness == nil)
        let names = try fetch(
            #"hosts={"a.test":{"ignoreQuery":["sig","X-*"]},"http://a.test":{"aliasOf":"a.test","ignoreQuery":"all"}}"#
        ).hosts
        let origin = try HostOrigin("https://a.test")
        #expect(names[origin]?.ignoredQuery == ["sig", "X-*"] && names[origin]?.alias == nil)
        let twin = try #require(names[try HostOrigin("http://a.test")])
        #expect(twin.ignoredQuery == ["*"] && twin.alias == origin)
        let b = try #require(hosts[try HostOrigin("http://b.test:8080")])
        #expect(b.authorization == "Bearer t" && b.isInsecure && b.fields.isEmpty)
        #expect(b.sendsTraceContext && !a.sendsTraceContext)
    }

    @Test(arguments: [
        ("fetch.proxy=socks5://us:geheim@p", "expected http://"),
        ("fetch.proxy=http://us:geheim@p/x", "expected http://"),
        ("sources.allow=ftp://a", "use http, https or s3"), ("sources.deny=a*b", "`a*b`"),
        (#"fetch.breaker={"failures":0}"#, "at least 1"), (#"fetch.breaker={"failure":3}"#, "did you mean `failures`?"),
        (#"hosts={"*.a":{}}"#, "HOST[:PORT]"), (#"hosts={"a/b":{}}"#, "more than HOST"), (#"hosts={"a":1}"#, "a map"),
        (#"hosts={"a":{},"https://A":{}}"#, "twice"), (#"hosts={"a":{"basic":"geheim"}}"#, "USER:PASSWORD"),
        (#"hosts={"a":{"basic":"geheim:x","bearer":"geheim"}}"#, "basic and bearer cannot be combined"),
        (#"hosts={"a":{"bearer":"geheim\nX: y"}}"#, "line break"),
        (#"hosts={"a":{"header":{}}}"#, "did you mean `headers`?"),
        (#"hosts={"a":{"headers":{"Host":"geheim"}}}"#, "cannot be set as a header field"),
        (#"hosts={"a":{"headers":{"X Y":"geheim"}}}"#, "cannot be set as a header field"),
        (#"hosts={"a":{"ca":"/absent/ca.pem"}}"#, "No such file"), (#"hosts={"a":{"insecure":1}}"#, "true or false"),
        (#"hosts={"a":{"ignoreQuery":"sig"}}"#, "all, or a list"),
        (#"hosts={"a":{"ignoreQuery":["a=b"]}}"#, "ignoreQuery: must be"),
        (#"hosts={"a":{"ignoreQuery":["a*b"]}}"#, "can end in `*`"),
        (#"hosts={"a":{"aliasOf":"A:443"}}"#, "name another alias"),
        (#"hosts={"a":{"aliasOf":"b"},"b":{"aliasOf":"c"}}"#, "name another alias"),
        (#"hosts={"a":{"aliasOf":"c/d"}}"#, "more than HOST"),
        (#"hosts={"a":{"trace":"yes"}}"#, "true or false"), (#"hosts={"a":{"freshness":1}}"#, "a map"),
        (#"hosts={"a":{"freshness":{"atLeast":-1}}}"#, "atLeast: expected a whole number of at least 0, not -1"),
        (#"hosts={"a":{"freshness":{"ignore":["no-store",7]}}}"#, "the element is a number; expected text"),
        (
            #"hosts={"a":{"freshness":{"ignore":["no-store","public"]}}}"#,
            "ignore: expected one of no-store, private, no-cache"
        ),
    ])
    func `what does not fit is an error that says why and shows no secret`(assignment: String, hint: String) throws {
        let error = #expect(throws: SettingErrors.self) { _ = try fetch(assignment) }
        let text = error.map { "\($0)" } ?? ""
        #expect(text.contains(hint), "\(text)")
        #expect(!text.contains("geheim"))
    }
}

extension CommandTests {
    @Suite struct Fetching {
        private let site = CommandSite()

        @Test func `the proxy of the settings is used, and its password shown nowhere`() async throws {
            let picture = try #require(ScratchFolder.bytes(at: Samples.folder + "/originals/grey.jpg"))
            let proxy = try LoopbackOrigin { _ in .response(200, ["Content-Type": "image/jpeg"], body: picture) }
            defer { proxy.stop() }
            let setting = "fetch.proxy=http://us:geheim@127.0.0.1:\(proxy.port)"
            let fetched = try await site.run(["get", "http://pictures.test/grey.jpg", "-v", "--set", setting])
            #expect(fetched.exit == 0 && !fetched.errors.contains("geheim"), "\(fetched.errors)")
            #expect(proxy.requests.map(\.target) == ["http://pictures.test/grey.jpg"])
            #expect(proxy.requests.first?["proxy-authorization"] == "Basic dXM6Z2VoZWlt")
            let shown = try await site.plain(["settings", "--set", setting])
            #expect(shown.exit == 0 && shown.text.contains("fetch.proxy") && !shown.text.contains("geheim"))
        }

        @Test func `proxies in the environment are not used`() async throws {
            let proxy = try LoopbackOrigin { _ in .response(200, ["Content-Type": "text/html"]) }
            defer { proxy.stop() }
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let variables = ["http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTP_PROXY"].map {
                "\($0)=\(proxy.url(""))"
            }
            let child = try ChildProgram(
                ["get", origin.url("/grey.jpg"), "--set", "allowPrivateAddresses=true"], folder: site.folder.path,
                environment: variables)
            let ended = await child.end
            #expect(ended.exit == 0, "\(ended.errors)")
            #expect(proxy.connections == 0 && origin.requests.count == 1)
        }

        @Test func `a source that the settings refuse ends with 3, an insecure host is warned of`() async throws {
            let origin = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { origin.stop() }
            let refused = try await site.run(["get", origin.url("/grey.jpg"), "--set", "sources.deny=127.0.0.1"])
            #expect(refused.exit == 3 && refused.errors.contains("sources.deny"))
            #expect(origin.requests.isEmpty)
            let warned = try await site.run(
                ["get", origin.url("/grey.jpg"), "--set", #"hosts={"a.test":{"insecure":true}}"#])
            #expect(warned.errors.contains("https://a.test:443: the certificate of this host is not verified"))
            let told = try await site.run([
                "get", origin.url("/grey.jpg"), "--set",
                #"hosts={"a.test":{"freshness":{"atLeast":60,"ignore":["no-cache","no-store"]}},"#
                    + #""b.test":{"freshness":{"atMost":60}}}"#,
            ])
            #expect(
                told.errors.contains(
                    "https://a.test:443: `no-store` is ignored, `no-cache` is ignored, lifetimes below 60 s are raised to 60 s"
                ))
            #expect(!told.errors.contains("b.test"))
        }
    }
}
