import Glibc
import PipelineSupport

/// The only part of a form in a request body, which contains a picture (`multipart/form-data`, RFC 7578).
package struct FormPart: Sendable, Hashable {
    /// The boundary with the two hyphens before it.
    private let delimiter: [UInt8]
    /// The name of the part.
    private let field: String

    /// The maximum size of the part's header, in bytes.
    private static let headerLimit = 4096

    static func isForm(_ contentType: String) -> Bool { contentType.lowercased().hasPrefix("multipart/") }

    /// - Parameters:
    ///   - contentType: The `Content-Type` of the request. It is a form.
    ///   - field: The name that the part must have.
    /// - Throws: a `Problem` with status 400 if the type has no valid boundary (RFC 2046 §5.1.1).
    init(_ contentType: String, field: String) throws(Problem) {
        let parameters = contentType.split(separator: ";").dropFirst().map { $0.trimmingSpace() }
        let boundary = parameters.first { $0.lowercased().hasPrefix("boundary=") }?.dropFirst(9) ?? ""
        let isQuoted = boundary.count >= 2 && boundary.hasPrefix("\"") && boundary.hasSuffix("\"")
        let bytes = Array((isQuoted ? boundary.dropFirst().dropLast() : boundary).utf8)
        guard (1...70).contains(bytes.count),
            bytes.allSatisfy({ $0.isLetterOrDigit || "'()+_,-./:=? ".utf8.contains($0) })
        else {
            throw Problem(.malformedRequest, "the `Content-Type` of the form has no valid `boundary`")
        }
        delimiter = Array("--".utf8) + bytes
        self.field = field
    }

    /// Returns the content of the part.
    ///
    /// - Throws: a `Problem` with status 400 unless the form is complete and the part is its only one.
    func content(of body: [UInt8]) throws(Problem) -> [UInt8] {
        let newline = Array("\r\n".utf8)
        guard body.starts(with: delimiter + newline),
            let headerEnd = Self.position(of: newline + newline, in: body[delimiter.count...].prefix(Self.headerLimit)),
            isExpected(body[delimiter.count..<headerEnd]),
            case let start = headerEnd + 4, let end = Self.position(of: newline + delimiter, in: body[start...]),
            case let rest = body[(end + 2 + delimiter.count)...],
            rest.elementsEqual("--".utf8) || rest.elementsEqual("--\r\n".utf8)
        else {
            throw Problem(
                .malformedRequest, "the form must consist of one part with the name `\(field)`, which is the picture")
        }
        return Array(body[start..<end])
    }

    private func isExpected(_ header: ArraySlice<UInt8>) -> Bool {
        String(decoding: header, as: UTF8.self).split(separator: "\r\n").contains { line in
            let parameters = line.split(separator: ";").map { $0.trimmingSpace() }
            guard let first = parameters.first else { return false }
            let name = first.lowercased().split(separator: ":").map { $0.trimmingSpace() }
            return name == ["content-disposition", "form-data"]
                && parameters.contains { $0 == "name=\"\(field)\"" || $0 == "name=\(field)" }
        }
    }

    private static func position(of pattern: [UInt8], in bytes: ArraySlice<UInt8>) -> Int? {
        bytes.withUnsafeBytes { place in
            guard let base = place.baseAddress else { return nil }
            var at = 0
            while place.count - at >= pattern.count,
                let found = memchr(base + at, Int32(pattern[0]), place.count - at - pattern.count + 1)
            {
                at = UnsafeRawPointer(found) - base
                if memcmp(found, pattern, pattern.count) == 0 { return bytes.startIndex + at }
                at += 1
            }
            return nil
        }
    }
}
