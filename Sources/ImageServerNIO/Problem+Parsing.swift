import ImageServer
import NIOHTTP1

extension Problem {
    /// Creates the problem for bytes that are not a valid request.
    ///
    /// - Parameter hasRequestLine: Whether the request line had arrived completely. If so, an exceeded limit means that
    ///   a header field is too long.
    init(_ error: HTTPParserError, hasRequestLine: Bool, headerBytes: Int) {
        switch error {
        case .headerOverflow where hasRequestLine:
            self.init(.fieldsTooLarge, "the maximum is \(headerBytes) bytes (`server.headerBytes`) and 100 fields")
        case .headerOverflow: self.init(.targetTooLong, "the maximum is \(RequestAdmission.targetLimit) bytes")
        case .invalidVersion: self.init(.unsupportedVersion)
        // The parser also reports this error for bytes that are not HTTP.
        case .invalidMethod:
            self.init(.malformedRequest, "the request does not begin with a known method in upper case")
        default: self.init(.malformedRequest, "the request is not valid HTTP/1.1 (RFC 9112)")
        }
    }
}
