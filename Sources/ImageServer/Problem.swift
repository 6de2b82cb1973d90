import HTTPCaching
import Pipeline
import PipelineFetching
import PipelineSupport

/// An error that is sent to the client as `application/problem+json` (RFC 9457).
package struct Problem: Error, Sendable, Hashable {
    /// The kind of a problem. The stable `type` member ends with its name.
    package struct Kind: Sendable, Hashable {
        /// Words joined by hyphens. The name never changes.
        let name: String
        let status: Int
        /// A title, the same for every occurrence.
        let title: String

        init(_ name: String, _ status: Int, _ title: String) {
            self.name = name
            self.status = status
            self.title = title
        }

        /// Creates the kind for a pipeline error, with the status of the error.
        init(_ name: String, _ code: PipelineError.Code, _ title: String) { self.init(name, code.status, title) }

        /// The `type` member, a URN.
        var type: String { "urn:image-pipeline:problem:" + name }
    }

    let kind: Kind
    /// A description of the error and how to fix it. Contains no internals of the server.
    package let detail: String?
    /// A message for the log, if the client must not see it.
    var logged: String?
    /// The methods for `Allow`, if the path does not support the request's method.
    var allowed: [String] = []
    /// The status of the origin's response, if it is the cause.
    var originStatus: Int?
    /// The value of `Retry-After` in seconds, if a later request may succeed.
    var retryAfter: Int?
    /// Whether no quality meets the recipe's limit for bytes.
    var isOverBudget = false

    package init(_ kind: Kind, _ detail: String? = nil) {
        self.kind = kind
        self.detail = detail
    }

    /// Returns the error response. The response is not stored by caches, and has `Vary: Accept` if a successful
    /// response would have it.
    ///
    /// - Parameters:
    ///   - grammar: The grammar of the route, which may have its own form of errors.
    ///   - showsAll: Whether the client may see the message for the log.
    package func response(
        variesByAccept: Bool = false, of grammar: (any Grammar)? = nil, showsAll: Bool = false, now: Double
    ) -> ServerResponse {
        let plain = grammar?.plainText(of: self)
        var json = JSONText()
        json.add("type", kind.type)
        json.add("title", kind.title)
        json.add("status", kind.status)
        json.add("detail", detail ?? (showsAll ? logged : nil))
        var fields = ServerResponse.ownFields(
            plain == nil ? "application/problem+json" : grammar?.errorType ?? "", now: now)
        if !allowed.isEmpty { fields.append(HeaderField("Allow", allowed.joined(separator: ", "))) }
        if variesByAccept { fields.append(HeaderField("Vary", "Accept")) }
        if kind == .unauthorized { fields.append(HeaderField("WWW-Authenticate", "Bearer")) }
        if let seconds = retryAfter ?? (kind == .overloaded ? 1 : nil) {
            fields.append(HeaderField("Retry-After", String(seconds)))
        }
        return ServerResponse(
            status: plain?.status ?? kind.status, fields: fields, body: Array((plain?.text ?? json.closed + "\n").utf8),
            note: note)
    }

    /// The note for the log, on one line. Line breaks are replaced because an origin may have written a part of the
    /// message.
    var note: String {
        guard let logged else { return kind.name }
        return kind.name + ": "
            + String(String.UnicodeScalarView(logged.unicodeScalars.map { $0.value < 0x20 ? " " : $0 }))
    }
}

extension Problem.Kind {
    package static let malformedRequest = Self("malformed-request", 400, "The request is malformed")
    static let invalidSource = Self(
        "invalid-source", .invalidSource, "The source is not valid")
    static let invalidRecipe = Self("invalid-recipe", .invalidRecipe, "The recipe is not valid")
    static let missingMask = Self(
        "missing-mask", .maskUnavailable, "The recipe uses a mask or overlay that is not available")
    static let unauthorized = Self("unauthorized", 401, "The request has no valid token")
    static let adminOff = Self("admin-off", 403, "This server has no admin token")
    static let badSignature = Self("bad-signature", 403, "The URL is not signed for this server")
    static let forbidden = Self("forbidden", 403, "Access is limited to operators of this server")
    static let referrerRefused = Self(
        "referrer-refused", 403, "This page is not allowed to show pictures from this server")
    static let recipeNotAllowed = Self("recipe-not-allowed", 403, "This server does not allow the recipe")
    static let routeClosed = Self("route-closed", 403, "This route is disabled on this server")
    static let sourceRefused = Self("source-refused", .sourceRefused, "This server does not allow the source")
    static let unknownPath = Self("unknown-path", 404, "This path does not exist")
    static let notFound = Self("not-found", .notFound, "The origin does not have the source")
    static let methodNotAllowed = Self("method-not-allowed", 405, "This path does not support the method")
    package static let requestTimeout = Self("request-timeout", 408, "The request took too long to arrive")
    static let preconditionFailed = Self("precondition-failed", 412, "A precondition of the request is not met")
    package static let bodyTooLarge = Self("body-too-large", 413, "The body of the request is too large")
    static let overLimit = Self("over-limit", .overLimit, "The original or the variant exceeds a limit")
    package static let targetTooLong = Self("target-too-long", 414, "The path is too long")
    static let notAnImage = Self("not-an-image", .notAnImage, "The original is not an image in a supported format")
    static let undecodable = Self("undecodable", .undecodable, "The original is damaged")
    static let renderFailed = Self("render-failed", .renderFailed, "The recipe cannot be applied to this original")
    static let renderCrashed = Self("render-crashed", .renderCrashed, "Rendering this original crashed")
    static let workerKilled = Self("worker-killed", .workerKilled, "The server ran out of memory while rendering")
    static let tooManyRequests = Self("too-many-requests", .rateLimited, "The client has sent too many requests")
    package static let fieldsTooLarge = Self("fields-too-large", 431, "The header fields are too large")
    static let internalError = Self("internal-error", 500, "Internal server error")
    static let unknownCoding = Self("unknown-coding", 501, "The transfer coding is not supported")
    static let notAvailable = Self(
        "not-available", .notAvailable, "The recipe needs a feature that is not available on this server")
    static let originFailed = Self(
        "origin-failed", .fetchFailed, "The origin could not be reached, or its response was not usable")
    package static let overloaded = Self("overloaded", 503, "The server is overloaded")
    static let originTimeout = Self("origin-timeout", .fetchTimedOut, "The origin did not respond in time")
    static let notCached = Self(
        "not-cached", .notCached, "The source is not in the cache, and the request forbids contacting the origin")
    static let loopDetected = Self("loop-detected", 508, "The request loops back to this server")
    static let renderTimeout = Self("render-timeout", .renderDeadline, "Rendering took too long")
    package static let unsupportedVersion = Self(
        "unsupported-version", 505, "The server supports only HTTP/1.0 and HTTP/1.1")

    /// All kinds, for the documentation.
    static let all: [Self] = [
        malformedRequest, invalidSource, invalidRecipe, missingMask, unauthorized, adminOff, badSignature, forbidden,
        recipeNotAllowed, referrerRefused, routeClosed, sourceRefused,
        unknownPath, notFound, methodNotAllowed, requestTimeout, preconditionFailed, bodyTooLarge, overLimit,
        targetTooLong, notAnImage,
        undecodable, renderFailed, renderCrashed, workerKilled, tooManyRequests, fieldsTooLarge, internalError,
        unknownCoding,
        notAvailable,
        originFailed, overloaded, originTimeout, notCached, renderTimeout,
        unsupportedVersion, loopDetected,
    ]
}

extension Problem {
    /// Creates a problem with the part of a pipeline error that a client may see. Messages about the source or the
    /// recipe help the author of the URL and are sent. Messages about addresses, folders and libraries are only logged.
    init(_ error: PipelineError) {
        guard let known = Self.byCode[error.code] else {
            self.init(.internalError)
            logged = error.message
            return
        }
        self.init(known.kind, known.showsMessage ? error.message : nil)
        let fault = error.cause as? FetchError
        logged = known.showsMessage ? fault?.logged : error.message
        originStatus = error.originStatus ?? (fault?.code == .tooManyRedirects ? 508 : nil)
        isOverBudget = (error.cause as? RenderError)?.code == .overBudget
        retryAfter = error.retryAfter.map { Int(($0 / .seconds(1)).rounded(.up)) }
    }

    private static let byCode: [PipelineError.Code: (kind: Kind, showsMessage: Bool)] = [
        .invalidSource: (.invalidSource, true), .invalidRecipe: (.invalidRecipe, true),
        .maskUnavailable: (.missingMask, false), .sourceRefused: (.sourceRefused, false),
        .notFound: (.notFound, true), .overLimit: (.overLimit, true), .notAnImage: (.notAnImage, true),
        .unsupportedFormat: (.notAnImage, true), .undecodable: (.undecodable, false),
        .renderFailed: (.renderFailed, true), .notAvailable: (.notAvailable, true),
        .fetchFailed: (.originFailed, false), .fetchTimedOut: (.originTimeout, false),
        .notCached: (.notCached, false), .renderDeadline: (.renderTimeout, true),
        .rateLimited: (.tooManyRequests, true), .renderCrashed: (.renderCrashed, false),
        .workerKilled: (.workerKilled, false),
        .overloaded: (.overloaded, true), .cancelled: (.overloaded, false),
        .superseded: (.overloaded, false), .shutDown: (.overloaded, false),
    ]
}
