import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import PipelineFetching

/// Listing and writing, at a store of ours and at others.
struct S3BatchTests {
    private static func transport(
        _ endpoint: String, _ credentials: S3Credentials? = .key(id: "ACCESSKEY", secret: "SECRETKEY"),
        environment: @escaping @Sendable (String) -> String? = { _ in nil }
    ) -> S3Transport {
        var fetching = FetchConfiguration()
        (fetching.maxRetries, fetching.retryDelay, fetching.headTimeout) = (2, .seconds(0.001), .seconds(60))
        var configuration = S3Configuration()
        configuration.store.endpoint = endpoint
        configuration.store.credentials = credentials
        return S3Transport(
            RetryingTransport(CurlTransport(fetching), configuration: fetching), configuration, environment: environment
        )
    }

    private static func object(_ text: String) throws -> SourceURL { try #require(try SourceURL(s3: text)) }

    private static func error(_ code: String) -> [UInt8] { Array("<Error><Code>\(code)</Code></Error>".utf8) }

    private static func page(_ inside: String) -> [UInt8] {
        Array("<?xml version=\"1.0\"?>\n<ListBucketResult xmlns=\"http://s3\">\(inside)</ListBucketResult>".utf8)
    }

    @Test func `a page of a listing is read in the spellings of several stores`() throws {
        let encoded = try #require(
            S3Listing(
                Self.page(
                    """
                    <Prefix>a</Prefix><NextContinuationToken>t&amp;u</NextContinuationToken>
                    <Contents><Key>a+b%2B%C3%BC%0A.jpg</Key><Owner><ID>x</ID></Owner><Size>5</Size></Contents>
                    <Contents><Size>0</Size><Key>a%20b/</Key></Contents><Empty/><EncodingType>url</EncodingType>
                    """)))
        #expect(encoded.objects.map(\.key) == ["a b+ü\n.jpg", "a b/"] && encoded.objects.map(\.size) == [5, 0])
        #expect(encoded.next == "t&u")
        let plain = try #require(
            S3Listing(Self.page("<Contents><Key>a+b%20&lt;&#x26;&#252;&gt;</Key><Size>1</Size></Contents>")))
        #expect(plain.objects.map(\.key) == ["a+b%20<&ü>"] && plain.next == nil)
        let token = "<NextContinuationToken>t</NextContinuationToken>"
        for (inside, next) in [
            ("<NextContinuationToken></NextContinuationToken>", nil), (token, "t"),
            ("<IsTruncated>true</IsTruncated>" + token, "t"), (token + "<IsTruncated>false</IsTruncated>", nil),
        ] {
            #expect(S3Listing(Self.page(inside))?.next == next)
        }
    }

    @Test(arguments: [
        "", "no XML", "<Error><Code>SlowDown</Code></Error>", "<ListBucketResult><Contents><Key>a</Key></Contents>",
        "<ListBucketResult><Contents></ListBucketResult></Contents>",
        "<!DOCTYPE a []><ListBucketResult></ListBucketResult>",
        "<ListBucketResult></ListBucketResult", "<></>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    ]) func `what is no whole listing is refused`(_ text: String) {
        #expect(S3Listing(Array(text.utf8)) == nil)
    }

    @Test(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"), arguments: ["moto", "rclone"])
    func `objects are written and listed in pages, whatever their names`(_ server: String) async throws {
        let server = try BucketServer(server, "photos", isShared: true)
        defer { server.stop() }
        let transport = Self.transport(server.endpoint)
        let keys = ["100%.jpg", "a b", "a+b", "a/b/c", "a/é", "z&<>\"'"]
        for key in keys {
            let object = try Self.object("s3://photos/" + SourceURL.canonical(Array(key.utf8), keeping: 0x2F))
            let type = [HeaderField("Content-Type", "image/png"), HeaderField("Cache-Control", "max-age=60, public")]
            #expect(try await transport.holds(object, Array(key.utf8), type) == nil)
            try await transport.put(Array(key.utf8), to: object, type)
            #expect(try await transport.holds(object, Array(key.utf8), type) == true)
            #expect(try await transport.holds(object, Array("other".utf8), type) == false)
            let private_ = [HeaderField("Cache-Control", "private")]
            #expect(try await transport.holds(object, Array(key.utf8), private_) == false)
        }
        func listed(_ text: String, _ limit: Int) async throws -> (keys: [String], pages: Int) {
            let folder = try #require(try SourceURL(s3: text, isFolder: true))
            var (keys, pages, next) = ([String](), 0, String?.none)
            repeat {
                let page = try await transport.list(folder, after: next, limit: limit)
                keys += page.objects.map(\.key)
                next = page.next
                pages += 1
            } while next != nil
            return (keys, pages)
        }
        let all = try await listed("s3://photos", 2)
        #expect(all.keys == keys && all.pages == 3)
        #expect(try await listed("s3://photos/a", 1000).keys == ["a/b/c", "a/é"])
        let nowhere = try #require(try SourceURL(s3: "s3://nowhere", isFolder: true))
        await #expect(throws: FetchError.self) { try await transport.check(nowhere) }
    }

    @Test func `an object is put with its checksums, and again after a 500 and a 503`() async throws {
        let count = Atomic(0)
        let origin = try LoopbackOrigin { _ in
            switch count.add(1, ordering: .relaxed).newValue {
            case 1: .response(500, body: Self.error("InternalError"))
            case 2: .response(503, body: Self.error("SlowDown"))
            case 3: .response(200)
            default: .response(403, body: Self.error("AccessDenied"))
            }
        }
        defer { origin.stop() }
        let transport = Self.transport(origin.url(""))
        let object = try Self.object("s3://photos/a")
        try await transport.put(Array("hello".utf8), to: object, [HeaderField("Content-Type", "image/png")])
        #expect(origin.requests.count == 3 && origin.connections == 1)
        for request in origin.requests {
            #expect(request.method == "PUT" && request.body == Array("hello".utf8))
            #expect(request["content-md5"] == "XUFAKrxLKna5cZ2REBfFkg==")
            #expect(request["x-amz-content-sha256"] == sha256Hex("hello") && request["content-type"] == "image/png")
        }
        let refused = await #expect(throws: FetchError.self) { try await transport.put([1], to: object, []) }
        #expect(refused?.message.contains("writing s3://photos/a: the store answered 403") == true)
        #expect(refused?.message.contains("grant them `s3:PutObject`") == true)
    }

    @Test(arguments: [("InvalidAccessKeyId", 403), ("ExpiredToken", 400)])
    func `credentials that a store refuses are looked for again, once`(_ code: String, _ status: Int) async throws {
        let folder = ScratchFolder()
        func rotate(to id: String) {
            folder.write("[default]\naws_access_key_id=\(id)\naws_secret_access_key=S\n", to: "credentials")
        }
        let known = Mutex("OLD")
        let origin = try LoopbackOrigin { request in
            request["authorization"]?.contains("Credential=\(known.withLock { $0 })/") == true
                ? .response(200, body: [1]) : .response(status, body: Self.error(code))
        }
        defer { origin.stop() }
        let files = ["AWS_SHARED_CREDENTIALS_FILE": folder.path + "/credentials"]
        let transport = Self.transport(origin.url(""), nil) { files[$0] }
        let request = FetchRequest(url: try Self.object("s3://photos/a"))
        rotate(to: "OLD")
        #expect(try await transport.fetch(request, onProgress: nil).status == 200)
        rotate(to: "NEW")
        known.withLock { $0 = "NEW" }
        #expect(try await transport.fetch(request, onProgress: nil).status == 200)
        #expect(origin.requests.count == 3)
        known.withLock { $0 = "NOT KNOWN HERE" }
        #expect(try await transport.fetch(request, onProgress: nil).status == status)
        #expect(origin.requests.count == 4)
    }
}

extension FetchConfiguration {
    fileprivate static var onLoopback: FetchConfiguration {
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        return configuration
    }
}
