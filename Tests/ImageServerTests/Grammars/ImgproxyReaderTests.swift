import PipelineSupport
import TestSupport
import Testing

@testable import ImageServer
@testable import Variants

/// `http://h/a.jpg` as base64url.
private let encoded = "aHR0cDovL2gvYS5qcGc"

@Suite struct ImgproxyReaderTests {
    /// `test-key` and `test-salt` in hexadecimal digits.
    private static let pair = ImgproxySettings.KeyPair(key: "746573742d6b6579", salt: "746573742d73616c74")

    private func signed(_ rest: String, _ pair: ImgproxySettings.KeyPair = ImgproxyReaderTests.pair, size: Int = 32)
        -> String
    {
        func bytes(_ hex: String) -> [UInt8] {
            let digits = Array(hex.utf8).compactMap(hexValue)
            return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
        }
        let code = hmacSHA256(bytes(pair.salt) + Array("/\(rest)".utf8), key: bytes(pair.key))
        return "/\(Base64.urlText(Array(code.prefix(size))))/\(rest)"
    }

    private func source(
        _ rest: String, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> String {
        try ImgproxyTesting.read("/_/" + rest, set: change).source
    }

    // MARK: Signatures

    @Test func `signatures are those of imgproxy's documentation`() throws {
        // `asd` is not a source, so a valid signature leads to an error about the source.
        for (signature, size) in [("oWaL7QoW5TsgbuiS9-5-DI8S3Ibbo1gdB2SteJh3a20", 32), ("oWaL7QoW5Ts", 8)] {
            let problem = try ImgproxyTesting.problem("/\(signature)/asd") {
                ($0.keys, $0.signatureSize) = ([Self.pair], size)
            }
            #expect(problem?.status == 404)
            #expect(signed("asd", size: size) == "/\(signature)/asd")
        }
    }

    @Test func `a changed byte of a signature or path is refused`() throws {
        let path = signed("w:10/plain/http://h/a.jpg")
        let bytes = Array(path.utf8)
        #expect(try ImgproxyTesting.read(path) { $0.keys = [Self.pair] }.isSigned)
        for index in 1..<bytes.count where bytes[index] != UInt8(ascii: "/") {
            var changed = bytes
            changed[index] = changed[index] == UInt8(ascii: "x") ? UInt8(ascii: "y") : UInt8(ascii: "x")
            let problem = try ImgproxyTesting.problem(String(decoding: changed, as: UTF8.self)) {
                $0.keys = [Self.pair]
            }
            #expect(problem?.status == 403 && problem?.general == "Forbidden", "byte \(index)")
        }
    }

    @Test(arguments: [
        "/oWaL7QoW5Ts/asd", "/oWaL7QoW5TsgbuiS9-5-DI8S3Ibbo1gdB2SteJh3a20=/asd",
        "/oWaL7QoW5TsgbuiS9-5-DI8S3Ibbo1gdB2SteJh3a21/asd", "/unsafe/asd", "/%6FWaL7QoW5Ts/asd",
    ])
    func `other spellings of a signature are refused`(_ path: String) throws {
        #expect(try ImgproxyTesting.problem(path) { $0.keys = [Self.pair] }?.status == 403)
    }

    @Test func `every pair of keys and every trusted text signs`() throws {
        let second = ImgproxySettings.KeyPair(key: "00", salt: "")
        for path in [signed(encoded), signed(encoded, second), "/trusted/\(encoded)"] {
            let request = try ImgproxyTesting.read(path) {
                ($0.keys, $0.trustedSignatures) = ([Self.pair, second], ["trusted"])
            }
            #expect(request.isSigned, "\(path)")
        }
    }

    @Test func `without keys any text without a colon stands in place of a signature`() throws {
        #expect(try !ImgproxyTesting.read("/unsafe/\(encoded)").isSigned)
        #expect(try ImgproxyTesting.problem("/w:300/plain/http://h/a.jpg")?.status == 403)
        #expect(try ImgproxyTesting.problem("/w:300/\(encoded)") { $0.trustedSignatures = ["t"] }?.status == 403)
    }

    @Test(arguments: ["", "/", "//", "/sig", "/sig/", "//\(encoded)", "/sig//", "/info/", "/?a/b"])
    func `a path without signature or rest is not found`(_ path: String) throws {
        let problem = try #require(try ImgproxyTesting.problem(path))
        #expect(problem.status == 404 && problem.general == "Invalid URL")
    }

    @Test func `encoded colons and merged slashes are undone before the signature is checked`() throws {
        for (rest, sent) in [
            ("w:10/plain/http://h/a.jpg", "w%3A10/plain/http:/h/a.jpg"),
            ("rs:fit:10:10/" + encoded, "rs%3Afit%3A10%3A10/" + encoded),
            ("plain/local:///a.jpg", "plain/local:/a.jpg"), ("plain/http://h/a.jpg", "plain/http:/h/a.jpg"),
        ] {
            let path = signed(rest)
            let signature = path.split(separator: "/")[0]
            let request = try ImgproxyTesting.read("/\(signature)/\(sent)?query=%zz") {
                ($0.keys, $0.localRoot) = ([Self.pair], "/pictures")
            }
            #expect(request.isSigned, "\(sent)")
        }
        // `%3A` in a source is part of the signed text.
        let path = signed("plain/http%3A//h/a.jpg")
        #expect(try ImgproxyTesting.read(path) { $0.keys = [Self.pair] }.source == "http://h/a.jpg")
    }

    // MARK: Sources

    @Test(arguments: [
        ("plain/http://h/a.jpg", "http://h/a.jpg"), ("plain/http%3A%2F%2Fh%2Fa%3Fb=c", "http://h/a?b=c"),
        ("plain/http://h/a.jpg?cut", "http://h/a.jpg"), ("plain/http:/h/a.jpg", "http://h/a.jpg"),
        ("plain/http://h/%2525.jpg", "http://h/%25.jpg"), ("plain/http://h/a%40b@png", "http://h/a@b"),
        ("plain/http://h/a.jpg@", "http://h/a.jpg"), ("plain/http://h/a%2Bb+c", "http://h/a+b+c"),
        ("plain/http://h//double//a.jpg", "http://h//double//a.jpg"), ("plain/photos:a/b.jpg", "photos:a/b.jpg"),
        ("plain/s3://bucket/a.jpg?cut", "s3://bucket/a.jpg"), ("w:1/h:2/plain/http://h/w:3/a", "http://h/w:3/a"),
        (encoded, "http://h/a.jpg"), (encoded + "=", "http://h/a.jpg"), (encoded + ".png", "http://h/a.jpg"),
        ("aHR0/cDovL2gv/YS5qcGc", "http://h/a.jpg"), ("w:1/aHR0cDovL2gv/YS5qcGc.webp", "http://h/a.jpg"),
        ("plain/http://h/%C3%BC.jpg", "http://h/ü.jpg"), ("plain/http://h/../a.jpg", "http://h/../a.jpg"),
    ])
    func `a source is decoded once`(_ rest: String, _ source: String) throws {
        #expect(try self.source(rest) == source)
    }

    @Test(arguments: [
        "plain/", "plain", "plain/@png", "plain/http://h/a@b@png", "plain/http://u:p@h/a@png", "aHR0.c.png", "!!!!",
        "plain/http://h/%", "plain/http://h/%4", "plain/http://h/%zz", "plain/http://h/%FF%FE", "plain/%00",
        "plain/http://h/a%00.jpg", "plain/http://h/a%0D%0AX:1", "gICA", "AAAA", "w:1", "w:1/", ".png",
        "aHR0cDovL2gvYS5qcGd",
        "-/w:1/plain/http://h/a", "w:1/-/h:1/plain/http://h/a", "enc/aHR0", "plain/http://h/a@xyz",
        "plain/http://h/a@mp4",
    ])
    func `a source that cannot be decoded is not found`(_ rest: String) throws {
        let problem = try #require(try ImgproxyTesting.problem("/_/" + rest))
        #expect(problem.status == 404 && problem.general == "Invalid URL", "\(problem)")
    }

    @Test(arguments: [
        ("http://h/p/", "plain/a.jpg", "http://h/p/a.jpg"), ("http://h/p", "plain/%2Fa.jpg", "http://h/p/a.jpg"),
        ("http://h/p/", "plain/http://h/p/a.jpg", "http://h/p/a.jpg"),
        ("http://h/p/", "plain/http://evil/a.jpg", "http://h/p/http://evil/a.jpg"),
        ("http://h", "plain/http://h.evil/a.jpg", "http://h/http://h.evil/a.jpg"),
        ("http://h", "plain/.evil/a.jpg", "http://h/.evil/a.jpg"), ("http://h", "plain/%40evil/a", "http://h/@evil/a"),
        ("http://h", "plain/%2Fa.jpg", "http://h/a.jpg"), ("http://h/?f=", "plain/a.jpg", "http://h/?f=a.jpg"),
        ("local:///", "plain/a.jpg", "imgproxy-local:a.jpg"),
    ])
    func `a base URL goes before other sources`(_ base: String, _ rest: String, _ source: String) throws {
        #expect(try self.source(rest) { ($0.baseURL, $0.localRoot) = (base, "/pictures") } == source)
    }

    @Test(arguments: [
        "plain/../a.jpg", "plain/x/..%2Fa.jpg", "plain/%2e%2e/a.jpg", "plain/%252e%252E/a.jpg", "plain/x%5C..%5Ca",
        "plain/x/.%2e", "plain/x%252f..%252fa", "plain/http://h/p/../a.jpg", "Li4vYS5qcGc", "plain/%zz/../a",
        "plain/%25zz/../a",
        "plain/..%2F%CC%81a", "plain/%252e%252e%252f%CC%81a", "plain/x/../%CC%81", "plain/100%25.jpg",
    ])
    func `a source does not lead out of the base URL or the folder`(_ rest: String) throws {
        let problem = try #require(try ImgproxyTesting.problem("/_/" + rest) { $0.baseURL = "http://h/p/" })
        #expect(problem.status == 404)
        let local = rest.hasPrefix("plain/") ? rest.replacing("plain/", with: "plain/local:///") : "bG9jYWw6Ly8vLi4vYQ"
        #expect(try ImgproxyTesting.problem("/_/" + local) { $0.localRoot = "/pictures" }?.status == 404)
    }

    @Test func `local sources are files below the folder`() throws {
        let change = { (settings: inout ImgproxySettings) in settings.localRoot = "/pictures" }
        #expect(try source("plain/local:///a/b.jpg", set: change) == "imgproxy-local:a/b.jpg")
        #expect(try source("plain/local:/a/b.jpg", set: change) == "imgproxy-local:a/b.jpg")
        #expect(try source("plain/local:////etc/passwd", set: change) == "imgproxy-local:etc/passwd")
        #expect(try source("plain/local:///a.jpg%3Fv=1", set: change) == "imgproxy-local:a.jpg")
        #expect(
            try source("plain/local:///a%3Fb!v=1") { ($0.localRoot, $0.queryInSource) = ("/p", "!") }
                == "imgproxy-local:a%3Fb")
        let problem = try ImgproxyTesting.problem("/_/plain/local:///a.jpg")
        #expect(problem?.status == 404 && problem?.general == "Invalid source URL")
    }

    @Test func `other settings change sources`() throws {
        #expect(try source(encoded + "/cat.jpg") { $0.base64IncludesFilename = true } == "http://h/a.jpg")
        #expect(try source("plain/s3://b/a%3Fb;v1") { $0.queryInSource = ";" } == "s3://b/a%3Fb?v1")
        #expect(try source("plain/s3://b/a;v1") { $0.queryInSource = "" } == "s3://b/a;v1")
    }

    @Test(arguments: [
        ("mys3://", "s3://bucket/", "mys3://a.jpg", "s3://bucket/a.jpg"),
        ("mys3://*/", "s3://b/${1}/images", "mys3://items/a.jpg", "s3://b/items/imagesa.jpg"),
        ("http://*.old/*/", "https://new/${2}/${1}/", "http://x.old/y/z/a.jpg", "https://new/y/x/z/a.jpg"),
        ("x:*", "http://h/${1}", "x:a/b", "http://h/a/b"), ("x:*/z", "no", "x:a/b/z", "x:a/b/z"),
        ("abc", "no", "xabc", "xabc"),
    ])
    func `replacements change prefixes`(
        _ pattern: String, _ replacement: String, _ source: String, _ result: String
    ) throws {
        #expect(ImgproxySettings.Replacement(pattern: pattern, replacement: replacement).applied(to: source) == result)
    }

    // MARK: Other parts of a request

    @Test func `the kind, expiry and file name of a request`() throws {
        let request = try ImgproxyTesting.read("/_/exp:20/cb:v1/att:1/fn:my%20cat/plain/http://h/a.jpg", now: 19.9)
        #expect(request.expiry == 20 && request.cachebuster == "v1" && request.isAttachment)
        #expect(request.fileStem == "my cat")
        #expect(try ImgproxyTesting.problem("/_/exp:20/plain/http://h/a.jpg", now: 20)?.status == 404)
        guard case .original = try ImgproxyTesting.read("/_/raw:1/plain/http://h/a.jpg@png").kind else {
            Issue.record("raw")
            return
        }
        guard case .information = try ImgproxyTesting.read("/info/_/exp:20/plain/http://h/a.jpg", now: 0).kind else {
            Issue.record("info")
            return
        }
        #expect(try ImgproxyTesting.problem("/info/_/w:20/plain/http://h/a.jpg")?.detail.contains("`w`") == true)
        #expect(
            try ImgproxyTesting.read(signed("plain/http://h/a.jpg").replacing("/", with: "/info/", maxReplacements: 1))
            {
                ($0.keys, $0.presetsOnly, $0.presets) = ([Self.pair], true, ["default": "w:1"])
            }.isSigned)
    }

    @Test(arguments: [
        ("plain/http://h/p/a.b.jpg", "a.b"), ("plain/http://h/", "image"), ("plain/http://h/.jpg", ".jpg"),
        ("plain/http://h/a%2520b.jpg%3Fx=/y.z", "a b"), ("plain/http://h", "image"), ("plain/photos:cat.jpg", "cat"),
        ("fn:Y2F0:1/plain/http://h/a.jpg", "cat"), ("fn:%22%C3%BC/plain/http://h/a.jpg", "\"ü"),
        ("plain/http://h/a%250Ab.jpg", "ab"),
    ])
    func `the file name comes from the option or the source`(_ rest: String, _ stem: String) throws {
        #expect(try ImgproxyTesting.read("/_/" + rest).fileStem == stem)
    }

    @Test func `Accept has a say only if a client may choose`() throws {
        func negotiates(_ options: String, _ change: @escaping (inout ImgproxySettings) -> Void) throws -> Bool {
            try ImgproxyTesting.read("/_/\(options)plain/http://h/a.jpg", set: change).negotiates
        }
        #expect(try !negotiates("") { _ in })
        #expect(try negotiates("") { $0.autoFormats = [.webp] })
        #expect(try !negotiates("f:png/") { $0.autoFormats = [.webp] })
        #expect(try negotiates("f:png/") { $0.enforceFormats = [.webp] })
        #expect(try !negotiates("raw:1/") { $0.enforceFormats = [.webp] })
    }

    @Test func `long and random paths are read or refused`() throws {
        let long = String(repeating: "a/", count: 4096)
        #expect(try ImgproxyTesting.problem("/_/" + long)?.status == 404)
        #expect(try source("plain/http://h/" + long).utf8.count == 8201)
        #expect(try ImgproxyTesting.problem("/" + long) { $0.keys = [Self.pair] }?.status == 403)
        #expect(try ImgproxyTesting.problem("/_/" + String(repeating: ":", count: 8192))?.status == 404)
        let options = String(repeating: "w:1/h:2/", count: 100)
        #expect(try source(options + "plain/http://h/a") == "http://h/a")
        var numbers = FuzzRandom(seed: 1)
        let pieces = [
            "/", ":", "%", "plain/", "@", ".", "w", "rs:fill", "%2F", "%3A", "é", "\r\n", "?", "local:/", "9", "-", "~",
            "\u{301}",
        ]
        let readers = [ImgproxyReader(checked: ImgproxySettings()), ImgproxyReader(checked: Self.strict)]
        for _ in 0..<10_000 {
            let path =
                "/_/"
                + (0..<Int.random(in: 0..<12, using: &numbers)).map { _ in
                    pieces[Int.random(in: 0..<pieces.count, using: &numbers)]
                }.joined()
            for reader in readers {
                do throws(ImgproxyProblem) {
                    let request = try reader.read(path[...], now: 0)
                    #expect(!request.source.isEmpty, "\(path)")
                } catch { #expect([403, 404].contains(error.status), "\(path)") }
            }
        }
    }

    private static let strict: ImgproxySettings = {
        var settings = ImgproxySettings()
        settings.baseURL = "http://h"
        settings.localRoot = "/pictures"
        settings.urlReplacements = [.init(pattern: "*:*", replacement: "${2}:${1}")]
        settings.presetsOnly = true
        settings.presets = ["w": "w:9", "default": "pr:w"]
        return settings
    }()
}

extension ImgproxyReader {
    init(checked settings: ImgproxySettings) {
        do { try self.init(settings) } catch { preconditionFailure("\(error)") }
    }
}
