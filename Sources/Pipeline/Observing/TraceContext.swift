package import HTTPCaching
import PipelineSupport

/// The trace context of a request (W3C Trace Context, level 1).
package struct TraceContext: Sendable, Hashable {
    /// The trace identifier, 32 hexadecimal digits.
    package let traceID: String
    /// The `traceparent` field, and `tracestate` if the request has it, as received.
    package let fields: [HeaderField]

    /// The maximum length of `tracestate`, in bytes. A longer field is dropped, as permitted by §3.3.1.5.
    private static let stateLimit = 512

    /// Reads the trace context from the header fields of a request. Returns nil unless exactly one `traceparent` is
    /// present and valid (§3.2).
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

    /// Parses `VERSION-TRACE-PARENT-FLAGS`, with digits in lowercase. Later versions may append further parts.
    private static func traceID(_ parent: String) -> String? {
        let parts = parent.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count >= 4, parts.count == 4 || parts[0] != "00", parts[0] != "ff",
            zip(parts, [2, 32, 16, 2]).allSatisfy({ isHex($0, count: $1) }),
            !parts[1].allSatisfy({ $0 == "0" }), !parts[2].allSatisfy({ $0 == "0" })
        else { return nil }
        return String(parts[1])
    }

    private static func isHex(_ text: Substring, count: Int) -> Bool {
        text.utf8.count == count && text.utf8.allSatisfy(\.isLowercaseHex)
    }
}
