import HTTPCaching
import Pipeline
import PipelineCaching
import PipelineSupport

/// Handles `/source/{source}` and `/purge`, which remove stored entries or mark them as stale. Requires the admin
/// token.
extension Site {
    /// Purges a source. `DELETE` removes its entries immediately. `PURGE` marks them as stale, unless the query
    /// specifies a mode.
    func purge(_ source: String, _ mode: PurgeMode?, _ request: ServerRequest) async throws(Problem) -> ServerResponse {
        try AdminToken.check(rules.adminToken, request.fields)
        var order = PurgeOrder()
        try order.add(
            source: source, rules.baseURLs, pipeline.ownName(_:isPrefix:), mountPoint: settings.mountPoint)
        if request.method == "DELETE" {
            guard mode != .soft else {
                throw Problem(.malformedRequest, "DELETE removes at once; PURGE makes stale (`mode=soft`)")
            }
            order.mode = .hard
        } else {
            order.mode = mode ?? .soft
        }
        return try await purge(order)
    }

    /// Handles `POST /purge` with a JSON body that selects the entries to purge.
    func purge(_ request: ServerRequest) async throws(Problem) -> ServerResponse {
        try AdminToken.check(rules.adminToken, request.fields)
        return try await purge(
            try PurgeOrder(
                json: request.body, rules.baseURLs, pipeline.ownName(_:isPrefix:), mountPoint: settings.mountPoint))
    }

    private func purge(_ order: PurgeOrder) async throws(Problem) -> ServerResponse {
        let unknown = await pipeline.unknown(among: order.sources)
        let result: PurgeResult
        do throws(PipelineError) { result = try await order.carryOut(pipeline) } catch { throw Problem(error) }
        var json = JSONText()
        json.add("mode", order.mode.rawValue)
        json.add("sources", result.sources)
        json.add("records", result.records)
        json.add("originals", result.originals)
        json.add("variants", result.variants)
        json.add("bytes", result.bytes)
        if !unknown.isEmpty { json.add("unknown", texts: unknown) }
        if !result.unconfirmed.isEmpty { json.add("unconfirmed", texts: result.unconfirmed.map(\.description)) }
        return ServerResponse(
            status: 200, fields: ServerResponse.ownFields("application/json", now: now()),
            body: Array((json.closed + "\n").utf8), note: "\(order.mode.rawValue) purge")
    }
}

/// The selection and the mode of a purge request.
struct PurgeOrder: Sendable {
    private(set) var sources: Set<String> = []
    private(set) var prefixes: [String] = []
    private(set) var tags: Set<String> = []
    private(set) var masks: Set<String> = []
    private(set) var overlays: Set<String> = []
    var mode = PurgeMode.soft

    init() {}

    /// Parses `{"sources":[…],"prefixes":[…],"hosts":[…],"tags":[…],"mode":"soft|hard","variantsOnly":false}`.
    ///
    /// Throws a 400 for everything else, so that a typing error does not purge the wrong entries or none at all.
    ///
    /// - Parameters:
    ///   - baseURLs: The names with which sources may begin.
    ///   - own: A closure that returns the stored name of an application's own original, or of a prefix of such names
    ///     if the second argument is true.
    ///   - mountPoint: The path prefix of all routes.
    init(
        json bytes: [UInt8], _ baseURLs: BaseURLs = .none, _ own: (String, Bool) -> String? = { _, _ in nil },
        mountPoint: String = ""
    ) throws(Problem) {
        let value: JSONValue
        do throws(JSONParser.Malformed) { value = try JSONParser.parse(bytes) } catch {
            throw Self.invalidBody("\(error)")
        }
        guard case .object(let members) = value else { throw Self.invalidBody("expected a JSON object") }
        for member in members {
            switch (member.name, member.value) {
            case ("mode", .string("soft")): mode = mode == .variantsOnly ? mode : .soft
            case ("mode", .string("hard")): mode = mode == .variantsOnly ? mode : .hard
            case ("variantsOnly", .bool(let isSet)): if isSet { mode = .variantsOnly }
            case ("sources", let value):
                for text in try Self.texts(value, member) {
                    try add(source: text, baseURLs, own, mountPoint: mountPoint)
                }
            case ("prefixes", let value):
                for text in try Self.texts(value, member) { try add(prefix: text, baseURLs, own) }
            case ("hosts", let value): for text in try Self.texts(value, member) { try add(host: text) }
            case ("tags", let value): tags.formUnion(try Self.texts(value, member))
            default:
                throw Self.invalidBody(
                    "unknown member `\(member.name)`; expected sources, prefixes, hosts or tags (lists of strings), mode (soft or hard) "
                        + "or variantsOnly (true or false)")
            }
        }
        guard tags.count <= Self.maxTags else {
            throw Self.invalidBody("it contains more than \(Self.maxTags) tags; use several requests")
        }
        guard !(sources.isEmpty && prefixes.isEmpty && tags.isEmpty && masks.isEmpty && overlays.isEmpty) else {
            throw Self.invalidBody("it does not name anything to purge; add sources, prefixes, hosts or tags")
        }
    }

    /// The maximum number of tags in a request. Each tag is compared with every record.
    private static let maxTags = 100

    private static func invalidBody(_ what: String) -> Problem {
        Problem(.malformedRequest, "the body of the purge is not valid: \(what)")
    }

    private static func texts(_ value: JSONValue, _ member: JSONValue.Member) throws(Problem) -> [String] {
        guard case .list(let values) = value else { throw invalidBody("`\(member.name)` is not a list") }
        var texts: [String] = []
        for value in values {
            guard case .string(let text) = value, !text.isEmpty else {
                throw invalidBody("`\(member.name)` contains an element that is not a string")
            }
            texts.append(text)
        }
        return texts
    }

    /// - Parameter text: An http or https URL, `name:path`, a path of the server, or `mask:` or `overlay:` followed by
    ///   a name.
    mutating func add(
        source text: String, _ baseURLs: BaseURLs, _ own: (String, Bool) -> String?, mountPoint: String
    ) throws(Problem) {
        if text.hasPrefix("mask:") {
            masks.insert(String(text.dropFirst(5)))
        } else if text.hasPrefix("overlay:") {
            overlays.insert(String(text.dropFirst(8)))
        } else {
            let source = try baseURLs.named(text, mountPoint: mountPoint)
            do throws(PipelineError) {
                let known = source.folder == nil ? own(source.text, false) : source.text
                let name = if let known { known } else { try ImageSource.url(source.text).recordName() }
                sources.insert(name)
            } catch {
                throw Problem(error)
            }
        }
    }

    private mutating func add(
        prefix text: String, _ baseURLs: BaseURLs, _ own: (String, Bool) -> String?
    ) throws(Problem) {
        if let source = try? baseURLs.resolved(text),
            let name = source.folder == nil ? own(source.text, true) : source.text
        {
            prefixes.append(name)
            return
        }
        // Any other string would be a path on this machine.
        guard ["http://", "https://"].contains(where: { text.lowercased().hasPrefix($0) }) else {
            throw Problem(
                .invalidSource,
                "the prefix `\(text)` must be an http(s) URL, or begin with the name of a folder or provider"
            )
        }
        do throws(PipelineError) { prefixes += try SourceSelection(prefix: text).prefixes } catch {
            throw Problem(error)
        }
    }

    private mutating func add(host text: String) throws(Problem) {
        do throws(PipelineError) { prefixes += try SourceSelection(host: text).prefixes } catch {
            throw Problem(error)
        }
    }

    func carryOut(_ pipeline: ImagePipeline) async throws(PipelineError) -> PurgeResult {
        let selection = PurgeSelection(
            names: sources, prefixes: prefixes, tags: tags, masks: masks, overlays: overlays)
        return try await pipeline.purge(selection, mode: mode)
    }
}
