package import HTTPCaching

/// The trace context of a request (W3C Trace Context, level 1): which trace of which client it belongs to.
package struct TraceContext: Sendable, Hashable {
    /// 32 hexadecimal digits.
    package let traceID: String
    /// `traceparent`, and `tracestate` if there is one, as they came.
    package let fields: [HeaderField]

    /// A longer `tracestate` is left out (§3.3.1.5 lets proxies do so beyond 512 characters).
    private static let stateLimit = 512

    /// - Parameter fields: all of a request.
    /// - Returns: nil without a valid `traceparent` (§3.2), or with several.
    package init?(_ fields: [HeaderField]) {
        let parents = fields.filter { FieldLines.isSameName($0.name, "traceparent") }
        guard parents.count == 1, let parent = parents.first?.value, let traceID = Self.traceID(parent) else {
            return nil
        }
        self.traceID = traceID
        let state = fields.filter { FieldLines.isSameName($0.name, "tracestate") }.map(\.value).joined(separator: ",")
        let isKept = !state.isEmpty && state.utf8.count <= Self.stateLimit
        self.fields =
            [HeaderField("traceparent", parent)] + (isKept ? [HeaderField("tracestate", state)] : [])
    }

    /// `VERSION-TRACE-PARENT-FLAGS`, digits in lower case; later versions may have more parts behind these.
    private static func traceID(_ parent: String) -> String? {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts.count == 4 || parts[0] != "00", parts[0] != "ff",
            zip(parts, [2, 32, 16, 2]).allSatisfy({ isHex($0, count: $1) }),
            !parts[1].allSatisfy({ $0 == "0" }), !parts[2].allSatisfy({ $0 == "0" })
        else { return nil }
        return String(parts[1])
    }

    private static func isHex(_ text: Substring, count: Int) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    }
}
