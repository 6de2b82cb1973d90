/// A request that an imgproxy URL makes.
struct ImgproxyRequest: Sendable {
    enum Kind: Sendable {
        case picture(ImgproxyChoice)
        /// The source as the origin sent it (`raw`).
        case original
        /// A description of the source (`/info`).
        case information
    }

    /// An absolute URL, or `name:path` with the name of a base URL.
    var source: String
    /// Whether one of the keys signed the URL, or the signature is a trusted one.
    var isSigned: Bool
    var kind: Kind
    /// Whether `Accept` may determine the format of the response.
    var negotiates: Bool
    /// When the URL expires, in Unix seconds, or nil if it never expires.
    var expiry: Double?
    /// The file name for `Content-Disposition` without its extension, in any characters except control characters.
    var fileStem: String
    /// Whether browsers should save the response instead of showing it.
    var isAttachment: Bool
    /// A text that only changes the URL.
    var cachebuster: String
    /// The limits that the URL sets. `ImgproxyChoice` checks all of them except `sourceBytes`, which the pipeline checks.
    var limits: ImgproxyLimits
}
