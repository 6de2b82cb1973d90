import PipelineSupport

/// The error in a store's XML response, and how to fix it.
struct S3Failure: Sendable {
    /// The error code, such as `NoSuchKey`, or an empty string if the response contains no code.
    var code: String
    /// The bucket's region, if the store names it.
    var region: String?

    /// - Parameter body: the body of a response with status 300 or above.
    init(_ body: [UInt8]) {
        // A store's errors are short, so the rest of a longer body is ignored.
        let text = String(decoding: body.prefix(4096), as: UTF8.self)
        code = Self.element("Code", in: text) ?? ""
        region = Self.element("Region", in: text).flatMap(Self.region)
    }

    private static func element(_ name: String, in text: String) -> String? {
        guard let start = text[...].utf8.end(of: "<\(name)>") else { return nil }
        let value = text[start...].prefix { $0 != "<" }
        let isPlain = value.utf8.allSatisfy { (0x20...0x7E).contains($0) }
        return value.isEmpty || value.utf8.count > 100 || !isPlain ? nil : String(value)
    }

    /// Returns the name of a region from a store if it is safe in a signature and in a host name. Otherwise, returns
    /// nil.
    static func region(_ text: String) -> String? {
        let isName = text.utf8.allSatisfy { byte in
            (0x61...0x7A).contains(byte) || byte.isDigit || byte == UInt8(ascii: "-")
        }
        return isName && (1...64).contains(text.utf8.count) ? text : nil
    }

    /// Whether different credentials may succeed.
    var isOfCredentials: Bool {
        ["ExpiredToken", "TokenRefreshRequired", "InvalidAccessKeyId", "InvalidToken"].contains(code)
    }

    /// Returns the sentence for messages, or nil if the status says enough.
    ///
    /// - Parameters:
    ///   - isSigned: whether the request had credentials.
    ///   - permission: the permission that the request needs, if it is not the permission to read an object.
    func remedy(_ status: Int, bucket: String, isSigned: Bool, permission: String? = nil) -> String? {
        switch code {
        case "NoSuchKey": "the bucket `\(bucket)` does not contain this object"
        case "NoSuchVersion": "the object has no such version"
        case "NoSuchBucket": "the bucket `\(bucket)` does not exist; check its name, and `endpoint` in the setting `s3`"
        case "RequestTimeTooSkewed": "the clock of this machine is wrong; synchronize it (NTP)"
        case "ExpiredToken", "TokenRefreshRequired":
            "the credentials have expired; renew them, or configure a source that renews them automatically"
        case "InvalidAccessKeyId", "InvalidToken":
            "the store does not know the access key; check `accessKey` in the setting `s3`, or AWS_ACCESS_KEY_ID in the environment"
        case "SignatureDoesNotMatch":
            "the secret does not match the access key; check `secretKey` in the setting `s3`"
        case "SlowDown", "ServiceUnavailable", "Busy":
            "the store limits the rate of requests; lower `fetch.perHost` or `fetch.rate`"
        case "AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException":
            "the bucket is in \(region.map { "the region `\($0)`" } ?? "a different region"); set `region` in the setting `s3`"
        case "AccessDenied", "":
            status != 403
                ? nil
                : isSigned
                    ? permission.map { "the store denied access with these credentials; grant them `\($0)`" }
                        ?? "the store denied these credentials access to the object; grant them `s3:GetObject`, "
                        + "and also `s3:ListBucket`, so that missing objects can be distinguished from forbidden ones"
                    : "the store denied access without credentials; set `accessKey` and `secretKey` in the "
                        + "setting `s3`, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        default: "the store answered with the code `\(code)`"
        }
    }
}
