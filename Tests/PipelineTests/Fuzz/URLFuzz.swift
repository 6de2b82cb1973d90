@testable import PipelineFetching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// URLs: normal form is stable and holds no credentials; a second line is a reference to resolve.
    static let urlTarget = FuzzTarget(
        "url",
        words: [
            "http://", "https://", "//", "@", ":", "/", "/../", "/./", "?", "#", "%", "%2F", "%2e", "%zz", "[::1]",
            "0x7f.1", "127.0.0.1", "%31", ":0", ":65536", ":443", "\\", "é", "xn--", "..", " ", "\n", "user:secret@",
        ]
    ) { bytes in
        let lines = bytes.fuzzLines
        guard let first = lines.first, let url = try? SourceURL(first) else { return nil }
        let normal = url.normalized
        do throws(SourceError) {
            let again = try SourceURL(normal)
            if again.normalized != normal { return "`\(normal)` becomes `\(again.normalized)`" }
            if again.userinfo != nil { return "credentials in `\(normal)`" }
        } catch {
            // Encoding makes texts longer, beyond what is taken.
            if normal.utf8.count <= SourceURL.longest { return "`\(normal)` is refused: \(error)" }
        }
        if !normal.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) { return "octets no URL may hold in `\(normal)`" }
        if lines.count > 1, let next = try? url.resolving(lines[1]), next.userinfo != nil {
            return "credentials taken from a reference"
        }
        return nil
    }
}
