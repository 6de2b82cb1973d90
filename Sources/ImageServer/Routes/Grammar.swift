package import HTTPCaching
package import Pipeline
package import Variants

/// Parses the paths of one picture route, and gives responses the form that its clients expect. Each grammar is one
/// file and one line in `Grammars`.
package protocol Grammar: Sendable {
    /// The route's name in logs, metrics and traces.
    var name: String { get }
    /// The path of the route, relative to the mount point of the site. All targets of the route are at or below it.
    var path: String { get }
    /// The path template relative to the mount point, in the form of OpenTelemetry's `http.route`.
    var template: String { get }
    /// The formats that the `Accept` field of a request may choose, best first. The array is empty if the field has no
    /// effect. Nil, the default, means the formats of the site's `auto` setting.
    var formats: [ImageFormat]? { get }
    /// The pages that may read responses with scripts. Nil, the default, means the site's `crossOrigin` setting. A grammar
    /// with its own rule also responds to OPTIONS.
    var crossOrigin: CrossOriginRule? { get }
    /// The request fields, in lowercase, that contain a secret of the grammar. They are not forwarded to origins.
    var secretFields: Set<String> { get }
    /// Whether pictures depend on the scheme and the host of the request. By default, they do not.
    var dependsOnHost: Bool { get }
    /// Whether a POST request may have a picture as its body. By default, it may not.
    var takesUploads: Bool { get }

    /// Parses a target without side effects.
    ///
    /// - Throws: a `Problem` with status 403 if the target is not signed or has expired, or 400 if it is malformed.
    func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest

    /// Returns the target for the log, in visible ASCII, without the signature or any credentials.
    func shown(_ target: RequestTarget) -> String

    /// The media type of `plainText`. By default, it is plain text.
    var errorType: String { get }

    /// Returns the status and the text of an error response. Nil, the default, means the JSON of RFC 9457.
    func plainText(of problem: Problem) -> (status: Int, text: String)?
}

extension Grammar {
    package var path: String { "/" + name }
    package var formats: [ImageFormat]? { nil }
    package var crossOrigin: CrossOriginRule? { nil }
    package var dependsOnHost: Bool { false }
    package var secretFields: Set<String> { [] }
    package var takesUploads: Bool { false }
    package var errorType: String { "text/plain; charset=utf-8" }
    package func plainText(of problem: Problem) -> (status: Int, text: String)? { nil }

    /// Whether the `Accept` field of a request may determine the format of the response.
    var negotiates: Bool { formats?.isEmpty != true }

    /// The methods that the route supports.
    var methods: [String] { RoutedRequest.methods + (crossOrigin == nil ? [] : ["OPTIONS"]) }
}

/// The parts of a request and of the server that a grammar may use in addition to the target.
package struct GrammarContext: Sendable {
    /// The rules that decide whether the request is allowed. A signature is checked before any part of the target is
    /// decoded.
    package var signature: Signature
    /// The current time, in Unix seconds.
    package var now: Double
    /// Whether a secret of the grammar's settings is required. A command of the operator does not need it.
    package var checksSecret = true
    /// The value of the `Authorization` field.
    package var authorization: String?
    /// The value of the `API-Key` field.
    package var apiKey: String?
    /// The value of `Content-Type` if the body of the request is a picture, and nil if the target names the source.
    package var uploadType: String?
    /// The formats that `Accept` names among the grammar's formats, best first.
    package var accepted: [ImageFormat] = []
    /// Returns whether the `sources` settings allow a source.
    package var allows: @Sendable (BaseURLs.Resolved) -> Bool = { _ in true }
    /// Returns whether a source names one of the site's base URLs.
    package var isNamed: @Sendable (String) -> Bool = { _ in false }
    /// The scheme, host and mount point that the client used, such as `https://img.example.org/images`. Nil if the
    /// request has no valid `Host`.
    package var base: String?
    /// The `Accept` field, or nil if the request has none.
    package var accept: String?
    /// The maximum edge of a result, in pixels.
    package var outputEdge = RenderLimits().outputEdge
    /// The sizes that replace the sizes in URLs without a list of their own, or nil if every size is allowed.
    package var sizes: SizeSteps?
}

/// A request for a picture or for a description of a picture, parsed from its target.
package struct RoutedRequest: Sendable {
    package enum ResponseKind: Sendable, Hashable {
        /// A picture rendered with a recipe.
        case variant(recipe: String)
        /// A picture with a recipe that depends on the original.
        case choice(RecipeChoice)
        /// The source as the origin sent it.
        case original
        /// A description of the source, as JSON.
        case info
        /// A description of the source in the form that `describe` returns. It may depend on `Accept`.
        case information
        /// A 303 with this `Location`.
        case redirect(String)
    }

    package var answer: ResponseKind
    /// The source as the client wrote it: a URL, `name:path`, or a path relative to the default base. Empty if the
    /// picture is the body of the request.
    package var source: String
    /// The permission that the signature check granted.
    package var grant: Signature.Grant
    /// The resolved source, if the grammar has its own base URLs. If nil, `source` is resolved.
    package var resolved: BaseURLs.Resolved?
    /// The minimum freshness of stored originals, and how long they may be used afterwards while they are validated.
    package var freshness: (least: Duration, stale: Duration)?
    /// The maximum number of redirects from the source, if it is lower than the configured number.
    package var maxRedirects: Int?
    /// The choice that replaces the choice of `answer` if no quality meets the limit of its recipe for bytes.
    package var whenOverBudget: RecipeChoice?
    /// The picture that is sent instead of an error, or nil to use the site's.
    package var fallback: FallbackPicture?
    /// The problems after which the unchanged original is sent. Empty by default.
    package var rescued: Set<Problem.Kind> = []
    /// Whether `Accept` may determine the format of this response. If nil, the grammar decides.
    package var negotiates: Bool?
    /// The part of the body that contains an uploaded picture, or nil if the body is the picture.
    package var form: FormPart?
    /// Whether a response from memory may answer the same target again without a call of `read`. Defaults to true.
    package var mayPrepare = true
    /// Returns the body and the media type of `information`. Returns nil if the source does not contain the picture.
    package var describe: @Sendable (ImageHeader) -> (text: String, mediaType: String)? = { _ in nil }
    /// Returns the JSON of `info` with the names of another system, given the JSON with ours.
    package var translate: @Sendable (SourceInformation, String) -> String = { $1 }
    /// Gives a successful response the header fields that clients of the grammar expect.
    package var present: @Sendable (inout ServerResponse, PresentedPicture) -> Void = { _, _ in }

    /// The methods that every picture route supports.
    static let methods = ["GET", "HEAD"]

    package init(answer: ResponseKind, source: String, grant: Signature.Grant) {
        (self.answer, self.source, self.grant) = (answer, source, grant)
    }
}

/// Describes the picture in a response that a grammar completes.
package struct PresentedPicture: Sendable {
    /// How the caches handled the request.
    package enum Handling: Sendable { case hit, miss, stale }

    /// The format, or nil if the original has an unknown format and is sent unchanged.
    package var format: ImageFormat?
    package var mediaType: String
    /// The header of the original, or nil if the original has an unknown format.
    package var header: ImageHeader?
    package var handling: Handling
    /// The origin's response as stored.
    package var original: StoredResponse
    /// The time of the response, in Unix seconds.
    package var now: Double
}

/// The grammars that a site supports.
package enum Grammars {
    /// The grammars of the site's own routes.
    static let own: [any Grammar] = ImageRoute.allCases
    /// The grammars of other systems, which `ServerConfiguration.grammars` mounts.
    static let mountable: [any MountableGrammar.Type] = [
        NextGrammar<NextJS>.self, NextGrammar<Vercel>.self, ImgproxyGrammar.self, ParameterGrammar<Netlify>.self,
        ParameterGrammar<Astro>.self, ParameterGrammar<IPX>.self, IIIFGrammar.self, ImaginaryGrammar.self,
    ]

    /// Whether a member of a grammar's settings names a file.
    package static func namesFile(_ member: String, of systemName: String) -> Bool {
        mountable.first { $0.systemName == systemName }?.fileMembers.contains(member) == true
    }
}

/// The route of a target. Logs, metrics, traces, cross-origin rules and the keys of prepared responses depend on the
/// route.
package enum Route: Sendable, Hashable {
    case picture(any Grammar)
    case operation(Operation.Name)

    package var name: String {
        switch self {
        case .picture(let grammar): grammar.name
        case .operation(let name): name.rawValue
        }
    }

    var template: String {
        switch self {
        case .picture(let grammar): grammar.template
        case .operation(let name): name.template
        }
    }

    /// The grammar, or nil if the route is an operation.
    package var grammar: (any Grammar)? { if case .picture(let grammar) = self { grammar } else { nil } }

    var negotiates: Bool { grammar?.negotiates == true }

    /// Whether pages of other origins may read the responses. They may not read responses of server operations, because
    /// these depend on the client's address.
    var isPicture: Bool { grammar != nil }

    package static func == (left: Route, right: Route) -> Bool { left.name == right.name }
    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension ServerConfiguration {
    /// Returns the route of a target, or nil if it belongs to no route.
    func route(of target: RequestTarget) -> Route? {
        guard target.name != nil else { return nil }
        if let grammar = pictureRoutes.first(where: { target.isBelow($0.path) }) { return .picture(grammar) }
        return Operation.Name(target).map(Route.operation)
    }
}
