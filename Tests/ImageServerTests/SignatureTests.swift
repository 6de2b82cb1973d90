import PipelineSupport
import TestSupport
import Testing

@testable import ImageServer

@Suite struct SignatureTests {
    static let hex = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    static func key(_ id: String = "web", _ hex: String = hex) throws -> SigningKey { try SigningKey(id: id, hex: hex) }

    private let source = "http%3A%2F%2Fh%2Fa.jpg"

    /// The detail of the refusal; nil if the target is granted.
    private func refusal(_ target: String, _ signature: Signature, now: Double = 0) -> String? {
        do throws(Problem) {
            _ = try signature.grant(RequestTarget(target), now: now)
            return nil
        } catch {
            return error.kind == .badSignature ? error.detail ?? "" : "\(error.kind)"
        }
    }

    /// Name, key, expiry, route, segments and path of each line of `samples/signers/vectors.tsv`.
    static func vectors() throws -> [(key: SigningKey, expiry: Int?, words: [String], path: String)] {
        let text = String(decoding: Samples.bytes("signers/vectors.tsv"), as: UTF8.self)
        return try text.split(separator: "\n").filter { !$0.hasPrefix("#") }.map { line in
            let columns = line.split(separator: "\t").map(String.init)
            return (
                try key(columns[0], columns[1]), Int(columns[2]), Array(columns[3..<(columns.count - 1)]),
                columns.last ?? ""
            )
        }
    }

    @Test func `signed paths are those of the test vectors, and are granted`() throws {
        let vectors = try Self.vectors()
        #expect(vectors.count >= 5)
        for (key, expiry, words, path) in vectors {
            #expect(key.path(words[0], words.dropFirst().map(PercentText.segment), expiry: expiry) == path)
            let same =
                switch words[0] {
                case "variant": key.variantPath(recipe: words[1], source: words[2], expiry: expiry.map(Double.init))
                case "info": key.infoPath(source: words[1], expiry: expiry.map(Double.init))
                default: key.originalPath(source: words[1], expiry: expiry.map(Double.init))
                }
            #expect(same == path)
            let signature = Signature(allowUnsigned: false, keys: [key])
            #expect(refusal(path, signature) == nil, "\(path)")
            #expect(try signature.grant(RequestTarget(path), now: 0).expiry == expiry.map(Double.init))
        }
    }

    @Test func `any of several keys signs, under its own name alone`() throws {
        let other = "ffeeddccbbaa99887766554433221100"
        let signature = Signature(allowUnsigned: false, keys: [try Self.key("old", other), try Self.key("new")])
        for key in signature.keys { #expect(refusal(key.path("original", [source]), signature) == nil) }
        for stranger in [
            try Self.key("old"), try Self.key("new", other), try Self.key("gone"), try Self.key("ol", other),
        ] {
            #expect(
                refusal(stranger.path("original", [source]), signature)?.contains("does not match the path") == true)
        }
    }

    @Test func `what is signed is the path as received`() throws {
        let key = try Self.key()
        let signature = Signature(allowUnsigned: true, keys: [key])
        let path = key.path("original", [source])
        #expect(refusal(path, signature) == nil)
        for (from, to) in [
            ("%3A", "%3a"), ("%3A", ":"), ("/original/", "/info/"), ("a.jpg", "b.jpg"), (".jpg", ".jpg?exp=9"),
            (".jpg", ".jpg?"), (".jpg", ".jpg/"), ("web.", "web.."), ("web.", "Web."), ("web.", "web.="), ("web.", "."),
            ("web.", ""), ("/original/web", "/original//web"),
        ] { #expect(refusal(path.replacing(from, with: to), signature) != nil, "\(to)") }
        let variant = key.path("variant", ["png", source])
        let code = try #require(variant.split(separator: "/").dropFirst().first)
        #expect(refusal("/original/\(code)/\(source)", signature) != nil)
        #expect(refusal("/variant/\(code)/png,\(source)", signature) != nil)
    }

    @Test func `a signature covers the expiry and the slashes as sent, and v may be added`() throws {
        let key = try Self.key()
        let signature = Signature(allowUnsigned: false, keys: [key])
        let path = key.path("variant", ["png", "photos:cats", "1.jpg"], expiry: 9)
        #expect(path.hasSuffix("/png/photos:cats/1.jpg?exp=9"))
        for target in [path, path + "&v=2", path.replacing("?exp=9", with: "?v=2&exp=9"), path + "&v=2&v=3"] {
            #expect(try signature.grant(RequestTarget(target), now: 0).expiry == 9)
            #expect(refusal(target, signature, now: 9)?.contains("expired") == true)
        }
        for (from, to) in [
            ("cats/", "cats%2F"), ("?exp=9", ""), ("?exp=9", "?v=2"), ("?exp=9", "?v=2&exp=8"),
            ("?exp=9", "?exp=9&w=1"), ("?exp=9", "?exp=9&"), ("?exp=9", "?exp=9&v"), ("cats/", "cats//"),
            ("1.jpg", "1.jpg/"),
        ] { #expect(refusal(path.replacing(from, with: to), signature) != nil, "\(to)") }
        let lasting = key.path("original", [source])
        #expect(refusal(lasting + "?v=2", signature) == nil)
        #expect(refusal(lasting + "?v=2&exp=9", signature) != nil)
    }

    @Test func `a code has one spelling`() throws {
        let key = try Self.key()
        let signature = Signature(allowUnsigned: false, keys: [key])
        let path = key.path("original", [source])
        let code = try #require(path.split(separator: "/").dropFirst().first)
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        let last = try #require(code.last.flatMap { alphabet.firstIndex(of: $0) })
        // The last digit holds four bits of the code; the two that are left over must be zero.
        #expect(last % 4 == 0)
        for spelling in ["\(code)=", code.dropLast() + String(alphabet[last + 1]), code + "A", "\(code.dropLast())"] {
            #expect(refusal(path.replacing(code, with: spelling), signature) != nil, "\(spelling)")
        }
    }

    @Test func `a path is refused from the second that it names, and says so`() throws {
        let key = try Self.key()
        let signature = Signature(allowUnsigned: false, keys: [key])
        let path = key.path("original", [source], expiry: 784_111_777)
        #expect(refusal(path, signature, now: 784_111_776.9) == nil)
        #expect(refusal(path, signature, now: 784_111_777) == "the URL expired on Sun, 06 Nov 1994 08:49:37 GMT")
        for other in ["784111778", "0784111777", "7841117770", ""] {
            #expect(
                refusal(path.replacing("784111777", with: other), signature)?.contains("does not match the path")
                    == true)
        }
    }

    @Test func `only the word unsigned passes without a key, and only where it is allowed`() throws {
        let open = Signature(allowUnsigned: true)
        #expect(refusal("/original/unsigned/\(source)", open) == nil)
        #expect(refusal("/original/unsigned/\(source)", Signature(allowUnsigned: false)) != nil)
        #expect(
            refusal("/original/unsigned/\(source)", Signature(allowUnsigned: false, keys: [try Self.key()])) != nil)
        #expect(refusal("/original/unsigned/\(source)?exp=99999999999", open)?.contains("`exp`") == true)
        for word in ["", "k1.abc", "Unsigned", "unsigned ", "unsigned."] {
            #expect(refusal("/original/\(word)/\(source)", open)?.contains("no keys") == true, "\(word)")
        }
    }

    @Test(arguments: ["/health", "/", "/variant", "/variant?v=1", "variant/unsigned/x/y", ""])
    func `a target without a segment for the signature gets no grant`(_ target: String) throws {
        #expect(throws: Problem.self) { try Signature(allowUnsigned: true).grant(RequestTarget(target), now: 0) }
    }

    @Test func `a weak or malformed key is refused`() throws {
        #expect(try Self.key(String(repeating: "a", count: 32), "00112233445566778899AABBccddeeff").id.count == 32)
        for (id, hex) in [
            ("", Self.hex), (String(repeating: "a", count: 33), Self.hex), ("a.b", Self.hex), ("ä", Self.hex),
            ("a", ""), ("a", "00112233445566778899aabbccddee"), ("a", Self.hex + "0"), ("a", "zz" + Self.hex),
            ("a", "0x" + Self.hex),
        ] { #expect(throws: InvalidSetting.self) { _ = try SigningKey(id: id, hex: hex) } }
    }

    @Test func `base64url is written as it is read`() {
        for length in 0...9 {
            let bytes = (0..<length).map { UInt8(truncatingIfNeeded: $0 * 91 + 251) }
            let text = Base64.urlText(bytes)
            #expect(Base64.urlDecoded(text) == bytes && !text.contains("="))
        }
    }
}
