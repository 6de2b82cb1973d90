import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing
import TransportConformance
import Variants

@testable import Pipeline
@testable import PipelineFetching

/// A store of files behind rclone, which checks signatures.
private final class RcloneBench: TransportBench {
    private let server: BucketServer
    var endpoint: String { server.endpoint }
    let transport: any Transport

    init(_ configure: (inout S3Configuration) -> Void = { _ in }) throws {
        server = try BucketServer("rclone", "photos", isShared: true)
        var configuration = S3Configuration()
        configuration.store.endpoint = server.endpoint
        configuration.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
        configure(&configuration)
        transport = S3Transport(https(), configuration, environment: { _ in nil })
    }

    func store(_ bytes: [UInt8], as name: String) {
        remove(name)
        server.folder.write(bytes, to: "photos/" + name)
    }

    func remove(_ name: String) { unlink(server.folder("photos/" + name)) }

    func url(of name: String) throws -> SourceURL {
        let path = name.utf8.flatMap { SourceURL.isUnreserved($0) ? [$0] : SourceURL.percentEncoded($0) }
        return try #require(try SourceURL(s3: "s3://photos/" + String(decoding: path, as: UTF8.self)))
    }

    func fetch(_ text: String, _ fields: HeaderField...) async throws -> FetchedResponse {
        try await transport.fetch(FetchRequest(url: #require(try SourceURL(s3: text)), fields: fields))
    }
}

/// Fetches http(s) URLs, those on loopback only if the settings name them.
private func https() -> any Transport {
    var fetching = FetchConfiguration()
    (fetching.maxRetries, fetching.headTimeout, fetching.totalTimeout) = (0, .seconds(60), .seconds(60))
    return RetryingTransport(CurlTransport(fetching), configuration: fetching)
}

@Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers")) struct S3Tests {
    @Test(arguments: TransportConformance.checks) func `objects keep the promises of a transport`(
        _ check: TransportConformance.Check
    ) async throws {
        #expect(try await TransportConformance.violations(of: check, by: RcloneBench()) == [])
    }

    @Test func `a store's errors say what would help, and hold no secret`() async throws {
        let bench = try RcloneBench()
        bench.store([1, 2, 3], as: "a")
        let missing = try await bench.fetch("s3://photos/none")
        #expect(missing.status == 404 && missing.problem == "the bucket `photos` does not contain this object")
        let bucket = try await bench.fetch("s3://nowhere/a")
        #expect(bucket.status == 404 && bucket.problem?.contains("the bucket `nowhere` does not exist") == true)
        for (credentials, said) in [
            (S3Credentials.key(id: "ACCESSKEY", secret: "WRONGSECRET"), "the secret does not match the access key"),
            (.key(id: "OTHERKEY", secret: "SECRETKEY"), "the store does not know the access key"),
        ] {
            var configuration = S3Configuration()
            configuration.store.endpoint = bench.endpoint
            configuration.store.credentials = credentials
            let transport = S3Transport(https(), configuration, environment: { _ in nil })
            let request = FetchRequest(url: try bench.url(of: "a"))
            let response = try await transport.fetch(request)
            #expect(response.status == 403, "\(said)")
            #expect(response.problem?.contains(said) == true, "\(response.problem ?? "nothing")")
            #expect(!"\(configuration) \(response)".contains("WRONGSECRET"))
        }
    }

    @Test func `an object is fresh as s3.maxAge says, if it says nothing itself`() async throws {
        var fresh = S3Configuration.Store()
        fresh.maxAge = .seconds(77)
        let bench = try RcloneBench { [fresh] in $0.buckets["photos"] = fresh }
        bench.store([1, 2, 3], as: "a b")
        let response = try await bench.fetch("s3://photos/a b")
        #expect(response.status == 200 && response.fields.first("cache-control") == "max-age=77")
        #expect(response.finalURL.normalized == "s3://photos/a%20b")
        let tag = try #require(response.fields.first("etag"))
        #expect(try await bench.fetch("s3://photos/a%20b", HeaderField("If-None-Match", tag)).status == 304)
    }

    @Test func `a picture in a bucket is a source like any other`() async throws {
        let bench = try RcloneBench()
        bench.store(sample("originals/night-tiny.jpg"), as: "night.jpg")
        var configuration = PipelineConfiguration()
        configuration.s3.store.endpoint = bench.endpoint
        configuration.s3.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
        let pipeline = try ImagePipeline(configuration)
        let request = ImageRequest(ImageSource("s3://photos/night.jpg"), recipe: try Recipe("thumbnail:20"))
        let first = try await pipeline.respond(to: request)
        #expect(first.width == 20 && first.record.source == "s3://photos/night.jpg")
        let again = try await pipeline.respond(to: request)
        #expect(again.outcome == .memory && again.digest == first.digest)
        #expect(try await pipeline.explain(request).source == "s3://photos/night.jpg")
        let error = await #expect(throws: PipelineError.self) {
            _ = try await pipeline.respond(to: ImageRequest(ImageSource("s3://photos/none.jpg")))
        }
        #expect(error?.code == .notFound)
        #expect(error?.message.contains("the bucket `photos` does not contain this object") == true)
        #expect(try await pipeline.purge(.source(.url("s3://photos/night.jpg"))).records == 1)
        await pipeline.shutdown()
    }

    @Test func `a version of an object is a source of its own`() async throws {
        let (program, endpoint) = try S3Servers.moto()
        defer { program.stop() }
        var fetching = FetchConfiguration()
        fetching.allowPrivateAddresses = .all
        let curl = CurlTransport(fetching)
        defer { curl.shutdown() }
        func put(_ path: String, _ body: String) async throws -> FetchedResponse {
            let type = HeaderField("Content-Type", "application/octet-stream")
            var request = FetchRequest(url: try SourceURL(endpoint + path), fields: [type])
            (request.method, request.body) = ("PUT", Array(body.utf8))
            request.signature = RequestSignature(region: "us-east-1", keyID: "any", secret: "any")
            return try await curl.fetch(request)
        }
        #expect(try await put("/photos", "").status == 200)
        let enabled = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        #expect(try await put("/photos?versioning", enabled).status == 200)
        let old = try #require(try await put("/photos/a", "old").fields.first("x-amz-version-id"))
        #expect(try await put("/photos/a", "new").status == 200)
        var configuration = S3Configuration()
        configuration.store.endpoint = endpoint
        configuration.store.credentials = .key(id: "any", secret: "any")
        let transport = S3Transport(https(), configuration, environment: { _ in nil })
        for (text, body) in [("s3://photos/a", "new"), ("s3://photos/a?versionId=\(old)", "old")] {
            let url = try #require(try SourceURL(s3: text))
            #expect(try await transport.fetch(FetchRequest(url: url)).body == Array(body.utf8))
            #expect(url.normalized == text)
        }
    }
}

/// Where credentials are looked for, and what texts name.
struct S3NameTests {
    @Test func `fields of a store are sent with each request and signed, those of a bucket instead`() async throws {
        let origin = try LoopbackOrigin { _ in .response(200) }
        defer { origin.stop() }
        var configuration = S3Configuration()
        configuration.store.endpoint = origin.url("")
        configuration.store.credentials = .key(id: "any", secret: "any")
        configuration.store.fields = [HeaderField("X-Amz-Request-Payer", "requester")]
        var own = S3Configuration.Store()
        own.fields = []
        configuration.buckets["own"] = own
        let transport = S3Transport(https(), configuration, environment: { _ in nil })
        for bucket in ["open", "own"] {
            _ = try await transport.fetch(FetchRequest(url: #require(try SourceURL(s3: "s3://\(bucket)/a"))))
        }
        #expect(origin.requests.map { $0["x-amz-request-payer"] } == ["requester", nil])
        let signed = origin.requests.map { $0["authorization"]?.contains("x-amz-request-payer") }
        #expect(signed == [true, false])
    }

    @Test(arguments: [
        ("s3://Photos/a b", "s3://photos/a%20b"), ("S3://photos/2026/é.jpg", "s3://photos/2026/%C3%A9.jpg"),
        ("s3://photos/a%20b", "s3://photos/a%20b"), ("s3://photos/a+b", "s3://photos/a%2Bb"),
        ("s3://photos/a%252Fb", "s3://photos/a%252Fb"), ("s3://photos/a%2fb", "s3://photos/a/b"),
        ("s3://photos/100%.jpg", "s3://photos/100%25.jpg"), ("s3://photos/a#b", "s3://photos/a%23b"),
        ("s3://photos/a%3Fb", "s3://photos/a%3Fb"), ("s3://photos/a..b/.c", "s3://photos/a..b/.c"),
        ("s3://photos/a?versionId=x/y", "s3://photos/a?versionId=x%2Fy"),
    ]) func `one object has one name`(_ text: String, _ name: String) throws {
        #expect(try SourceURL(s3: text)?.normalized == name)
    }

    @Test(arguments: [
        "s3://", "s3:///a", "s3://photos", "s3://photos/", "s3://photos/a?b=c", "s3://photos/a?versionId=",
        "s3://pho tos/a", "s3://user:secret@photos/a", "s3://photos/a\u{1}", "s3://photos/../other/a",
        "s3://photos/a/%2e%2E/b", "s3://photos/./a", "s3://.photos/a",
    ]) func `what names no object is refused`(_ text: String) throws {
        let error = #expect(throws: SourceError.self) { _ = try SourceURL(s3: text) }
        #expect(error?.message.contains("secret") == false)
    }

    @Test func `the URL of an object follows endpoint, style and region`() throws {
        var store = S3Configuration.Store()
        let object = try #require(try SourceURL(s3: "s3://photos/a b"))
        #expect(
            try S3Transport.url(of: object, store, "eu-west-1").normalized
                == "https://photos.s3.eu-west-1.amazonaws.com/a%20b")
        store.endpoint = "http://10.0.0.5:9000"
        #expect(try S3Transport.url(of: object, store, "auto").normalized == "http://10.0.0.5:9000/photos/a%20b")
        store.endpoint = "https://account.r2.cloudflarestorage.com"
        store.pathStyle = false
        #expect(
            try S3Transport.url(of: object, store, "auto").normalized
                == "https://photos.account.r2.cloudflarestorage.com/a%20b")
    }

    @Test(arguments: [
        ("AccessDenied", 403, true, "`s3:GetObject`"), ("AccessDenied", 403, false, "without credentials"),
        ("RequestTimeTooSkewed", 403, true, "clock"), ("ExpiredToken", 400, true, "expired"),
        ("SlowDown", 503, true, "limits the rate"), ("NoSuchVersion", 404, true, "has no such version"),
        ("PermanentRedirect", 301, true, "set `region` in the setting `s3`"),
        ("Odd", 500, true, "the store answered with the code `Odd`"),
    ]) func `each error of a store says what would help`(
        _ code: String, _ status: Int, _ isSigned: Bool, _ said: String
    ) throws {
        let failure = S3Failure(
            Array("<?xml version=\"1.0\"?><Error><Code>\(code)</Code><Message>no</Message></Error>".utf8))
        let remedy = try #require(failure.remedy(status, bucket: "photos", isSigned: isSigned))
        #expect(remedy.contains(said))
    }

    @Test(arguments: ["eu\r\nX-Evil: 1", "a:b", "", "EU", "..", String(repeating: "a", count: 65)])
    func `what is no name of a region is not believed, nor shown`(region: String) {
        let failure = S3Failure(Array("<Error><Code>No\nSuch</Code><Region>\(region)</Region></Error>".utf8))
        #expect(failure.region == nil && failure.code.isEmpty)
        #expect(S3Failure.region("eu-west-1") == "eu-west-1")
    }

    @Test func `a region that did not help is forgotten`() async throws {
        let asked = Mutex(0)
        let origin = try LoopbackOrigin { request in
            let isFirst = asked.withLock { count in
                count += 1
                return count == 1
            }
            let isRight = request["authorization"]?.contains("/us-east-1/s3/") == true
            if isFirst { return .response(400, body: Array("<Error><Region>nowhere</Region></Error>".utf8)) }
            return isRight ? .response(200, body: [1]) : .response(403)
        }
        defer { origin.stop() }
        var configuration = S3Configuration()
        configuration.store.endpoint = origin.url("")
        configuration.store.region = "us-east-1"
        configuration.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY", token: nil)
        let transport = S3Transport(https(), configuration, environment: { _ in nil })
        let request = FetchRequest(url: try #require(try SourceURL(s3: "s3://photos/a")))
        #expect(try await transport.fetch(request).status == 403)
        #expect(try await transport.fetch(request).status == 200)
    }

    @Test func `a store that names another region is asked there once, and then first`() async throws {
        let origin = try LoopbackOrigin { request in
            let isRight = request["authorization"]?.contains("/eu-west-1/s3/") == true
            return isRight
                ? .response(200, body: [1]) : .response(301, ["x-amz-bucket-region": "eu-west-1", "Location": "/"])
        }
        defer { origin.stop() }
        var configuration = S3Configuration()
        configuration.store.endpoint = origin.url("")
        configuration.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY", token: "TOKEN")
        let transport = S3Transport(https(), configuration, environment: { _ in nil })
        let request = FetchRequest(url: try #require(try SourceURL(s3: "s3://photos/a")))
        for asked in [2, 3] {
            #expect(try await transport.fetch(request).body == [1])
            #expect(origin.requests.count == asked)
        }
        #expect(origin.requests.allSatisfy { $0["x-amz-security-token"] == "TOKEN" && $0.target == "/photos/a" })
    }

    @Test func `patterns of sources name buckets and folders of them`() throws {
        let object = try #require(try SourceURL(s3: "s3://photos/2026/a.jpg"))
        func admits(_ pattern: String) throws -> Bool {
            try HostPolicy(allow: [pattern]).refusal(of: object) == nil
        }
        for pattern in ["s3://photos", "s3://photos/2026", "s3://*"] { #expect(try admits(pattern), "\(pattern)") }
        for pattern in ["s3://other", "s3://photos/2025", "photos", "*"] { #expect(try !admits(pattern), "\(pattern)") }
        let denied = try HostPolicy(deny: ["*"])
        #expect(denied.refusal(of: object) != nil)
        #expect(throws: InvalidSetting.self) { try HostPolicy(allow: ["s3://photos:80"]) }
    }

    @Test func `credentials come from the environment, then from a profile, then from the container`() async throws {
        let folder = ScratchFolder()
        let shared =
            "# comment\n[default]\naws_access_key_id = D\naws_secret_access_key=S\n[work]\naws_access_key_id=W\n"
            + "aws_secret_access_key = T\naws_session_token = U\n"
        folder.write(shared, to: "credentials")
        func found(_ given: S3Credentials?, _ environment: [String: String]) async throws -> String? {
            let chain = S3CredentialChain(https(), { environment[$0] }, asksInstance: false)
            return try await chain.signature(given, region: "r").map { "\($0.keyID) \($0.secret) \($0.token ?? "-")" }
        }
        let files = ["AWS_SHARED_CREDENTIALS_FILE": folder.path + "/credentials"]
        #expect(try await found(nil, [:]) == nil)
        #expect(try await found(nil, ["AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"]) == "A B -")
        #expect(try await found(nil, files) == "D S -")
        #expect(try await found(nil, files.merging(["AWS_PROFILE": "work"]) { $1 }) == "W T U")
        #expect(try await found(.profile("work"), files) == "W T U")
        #expect(try await found(.anonymous, files) == nil)
        await #expect(throws: FetchError.self) { _ = try await found(.profile("other"), files) }
        let asked = Mutex<[String]>([])
        let origin = try LoopbackOrigin { request in
            asked.withLock { $0.append(request["authorization"] ?? "-") }
            let json =
                "{\"AccessKeyId\":\"C\",\"SecretAccessKey\":\"E\",\"Token\":\"F\",\"Expiration\":\"2001-01-01T00:00:00Z\"}"
            return .response(200, body: Array(json.utf8))
        }
        defer { origin.stop() }
        let variables = [
            "AWS_CONTAINER_CREDENTIALS_FULL_URI": origin.url("/c"), "AWS_CONTAINER_AUTHORIZATION_TOKEN": "secret",
        ]
        let chain = S3CredentialChain(https(), { variables[$0] }, asksInstance: false)
        // They have ended, so that each request asks for new ones.
        for _ in 0..<2 { #expect(try await chain.signature(nil, region: "r")?.token == "F") }
        #expect(asked.withLock { $0 } == ["secret", "secret"])
    }

    @Test func `an instance is asked with a token, and only if the setting allows it`() async throws {
        let origin = try LoopbackOrigin { request in
            switch (request.method, request.target) {
            case ("PUT", "/latest/api/token"): return .response(200, body: Array("TOKEN".utf8))
            case _ where request["x-aws-ec2-metadata-token"] != "TOKEN": return .response(401)
            case (_, "/latest/meta-data/iam/security-credentials/"): return .response(200, body: Array("role".utf8))
            case (_, "/latest/meta-data/iam/security-credentials/role"):
                return .response(200, body: Array("{\"AccessKeyId\":\"I\",\"SecretAccessKey\":\"J\"}".utf8))
            default: return .response(404)
            }
        }
        defer { origin.stop() }
        let environment: @Sendable (String) -> String? = {
            $0 == "AWS_EC2_METADATA_SERVICE_ENDPOINT" ? origin.url("") : nil
        }
        let asks = S3CredentialChain(https(), environment, asksInstance: true)
        #expect(try await asks.signature(nil, region: "r")?.keyID == "I")
        let asksNot = S3CredentialChain(https(), environment, asksInstance: false)
        #expect(try await asksNot.signature(nil, region: "r") == nil)
    }
}
