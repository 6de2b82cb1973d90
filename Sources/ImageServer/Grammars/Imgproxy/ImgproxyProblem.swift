/// The reason why an imgproxy URL cannot be served. The response contains the general sentence, then the detail.
struct ImgproxyProblem: Error, Sendable, Hashable {
    /// The status of the response.
    let status: Int
    /// A sentence that is the same for every problem of this kind, such as `Invalid URL`.
    let general: String
    /// The option or the part of the URL that is wrong, and how to fix it.
    let detail: String

    /// The signature is missing or wrong, or the URL uses a security option that is not allowed.
    static func forbidden(_ detail: String) -> Self { Self(status: 403, general: "Forbidden", detail: detail) }
    /// The path or an option is invalid, or the URL has expired.
    static func invalidURL(_ detail: String) -> Self { Self(status: 404, general: "Invalid URL", detail: detail) }
    /// The source cannot be addressed.
    static func invalidSource(_ detail: String) -> Self {
        Self(status: 404, general: "Invalid source URL", detail: detail)
    }
    /// The original exceeds a limit, or the result cannot be written.
    static func invalidImage(_ detail: String) -> Self {
        Self(status: 422, general: "Invalid source image", detail: detail)
    }
}
