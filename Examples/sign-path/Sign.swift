// Prints a signed path: sign-path KEYID EXPIRY|- variant RECIPE SOURCE | original SOURCE | info SOURCE
// The environment variable KEY contains the key in hexadecimal digits.
import Crypto
import Foundation

func signedPath(keyID: String, key: Data, route: String, segments: [String], expiry: Int? = nil) -> String {
    let plain = CharacterSet(charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:,=@")
    var rest = segments.map { "/" + ($0.addingPercentEncoding(withAllowedCharacters: plain) ?? "") }.joined()
    if let expiry { rest += "?exp=\(expiry)" }
    let code = HMAC<SHA256>.authenticationCode(for: Data("/\(route)\(rest)".utf8), using: SymmetricKey(data: key))
    let text = Data(code).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing(
        "=", with: "")
    return "/\(route)/\(keyID).\(text)\(rest)"
}

@main
struct Sign {
    static func main() {
        let words = CommandLine.arguments.dropFirst().map { $0 }
        let digits = Array(ProcessInfo.processInfo.environment["KEY"] ?? "")
        let key = Data(
            stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) })
        print(
            signedPath(keyID: words[0], key: key, route: words[2], segments: Array(words[3...]), expiry: Int(words[1])))
    }
}
