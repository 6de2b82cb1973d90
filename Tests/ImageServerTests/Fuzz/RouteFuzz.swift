import PipelineCaching
import PipelineSupport
import TestSupport
import Variants

@testable import ImageServer

extension ImageServerFuzzTests {
    /// Targets of requests and their spellings: decoding what was encoded gives the same route.
    static let routeTarget = FuzzTarget(
        "route",
        words: [
            "/variant/unsigned/", "/original/unsigned/", "/health", "/source/", "/purge", "?mode=hard", "b64:",
            "aHR0cDovL2E", "aHR0cDovL2E=", "-_", "%2F", "/page/samples/",
            "%25", "%", "%zz", "%C3%A9", "%FF", "+", "/", "?", "//", "=", "thumbnail:5,png", "\0",
            "/info/", "web.", "?exp=", "4102444800", "?v=", "&v=", "&exp=", "..", "%2e",
            #"[{"operation":"fit","params":{"width":5,"height":4,"type":"webp"}}]"#, #""ignore_failure":true"#, "--a",
            "\r\n", "Content-Disposition: form-data; name=file", "--a--",
        ]
    ) { bytes in
        let text = bytes.fuzzText
        if let decoded = percentDecoded(text) {
            if decoded.count > text.utf8.count { return "decoding makes more bytes" }
            if percentDecoded(encoded(decoded)) != decoded { return "other bytes when encoded and decoded again" }
        }
        _ = Base64.urlDecoded(text)
        if let path = SignedPath(RequestTarget(text)) {
            // Everything is signed but the signature, the slash before it, and `v=…` with the mark before or behind it.
            let query = text.utf8.firstIndex(of: UInt8(ascii: "?")).map { text.utf8[$0...].dropFirst() }
            let versions = (query?.split(separator: UInt8(ascii: "&")) ?? []).filter { $0.starts(with: "v=".utf8) }
            let unsigned = versions.reduce(path.signature.count + 1) { $0 + $1.count + 1 }
            if path.text.count + unsigned != text.utf8.count { return "bytes that are not signed" }
            if (path.keyAndCode?.code.count ?? 32) != 32 { return "a code of another length" }
        }
        if let recipe = try? ImaginaryOperations(text).recipe([]), (try? Recipe(recipe.description)) != recipe {
            return "`\(recipe)` is another recipe when parsed again"
        }
        if let form = try? FormPart("multipart/form-data; boundary=a", field: "file"),
            let content = try? form.content(of: bytes), content.count + 50 > bytes.count
        {
            return "a form without a header"
        }
        guard let read = try? Read(text) else { return nil }
        let again: Read?
        switch read {
        case .operation(.source(let source, let mode)):
            if source.isEmpty || source.hasPrefix("b64:") { return nil }
            let query = mode.map { "?mode=\($0.rawValue)" } ?? ""
            again = try? Read("/source/\(encoded(Array(source.utf8)))\(query)")
        case .operation: return nil
        case .picture(let name, let recipe, let source):
            if SignedPath(RequestTarget(text)) == nil { return "`\(text)` needs no signature" }
            // Only `b64:` can express these.
            if source.isEmpty || source.hasPrefix("b64:") { return nil }
            let middle = name == "variant" ? "/" + encoded(Array(recipe.utf8)) : ""
            again = try? Read("/\(name)/unsigned\(middle)/\(encoded(Array(source.utf8)))")
        }
        return again == read ? nil : "`\(read)` becomes `\(again.map { "\($0)" } ?? "nothing")`"
    }

    private static func encoded(_ bytes: [UInt8]) -> String {
        bytes.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
