import ImageServer
import NIOHTTP1

extension Problem {
    /// Creates the problem for bytes that are not a valid request.
    ///
    /// - Parameter hasRequestLine: Whether the request line had arrived. If it had and the limit is exceeded, a header
    ///   field is too long.
    init(_ error: HTTPParserError, hasRequestLine: Bool, headerBytes: Int) {
        switch error {
        case .headerOverflow where hasRequestLine:
            self.init(.fieldsTooLarge, "at most \(headerBytes) bytes and 100 fields are taken")
        case .headerOverflow: self.init(.targetTooLong, "at most \(RequestAdmission.targetLimit) bytes are taken")
        case .invalidVersion: self.init(.unsupportedVersion)
        // The parser also reports this error for bytes that are not HTTP.
        case .invalidMethod:
            self.init(.malformedRequest, "it does not begin with a method known here, in upper case")
        default: self.init(.malformedRequest, "the request is not valid HTTP/1.1 (RFC 9112)")
        }
    }
}
