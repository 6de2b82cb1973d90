import ImageServer
import NIOHTTP1

extension Problem {
    /// What a client is told whose bytes are no request.
    ///
    /// - Parameter hasRequestLine: whether that had arrived, so that what is too long is a field.
    init(_ error: HTTPParserError, hasRequestLine: Bool, headerBytes: Int) {
        switch error {
        case .headerOverflow where hasRequestLine:
            self.init(.fieldsTooLarge, "at most \(headerBytes) bytes and 100 fields are taken")
        case .headerOverflow: self.init(.targetTooLong, "at most \(RequestAdmission.targetLimit) bytes are taken")
        case .invalidVersion: self.init(.unsupportedVersion)
        // Not told apart from what is no request at all.
        case .invalidMethod:
            self.init(.malformedRequest, "it does not begin with a method known here, in upper case")
        default: self.init(.malformedRequest, "it is no HTTP/1.1 as RFC 9112 has it")
        }
    }
}
