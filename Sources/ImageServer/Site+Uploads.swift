import HTTPCaching
import Pipeline
import PipelineSupport
import Synchronization
import Variants

/// Decides whether the server reads the body of a request.
package enum BodyIntake: Sendable, Hashable {
    /// The body is not needed. The server may read and discard it.
    case unneeded
    /// The body is forwarded to an origin or selects entries to purge.
    case wanted
    /// The body is a picture.
    case upload(UploadPermit)
    /// The body is not read.
    case refused(Problem)
}

/// The permission to upload one picture, and the part of the memory for uploads that it holds.
package final class UploadPermit: Sendable, Hashable {
    /// The request for the variant, without the picture.
    let asked: ImageRequest
    fileprivate let present: @Sendable (inout ServerResponse, PresentedPicture) -> Void
    /// The boundary of the form that contains the picture, or nil if the body is the picture.
    fileprivate let form: FormPart?
    private let client: String
    private let limit: Int
    private let budget: UploadBudget
    private let held = Mutex(0)

    fileprivate init(_ asked: ImageRequest, _ routed: RoutedRequest, _ client: String, _ limit: Int, _ site: Site) {
        (self.asked, present, form) = (asked, routed.present, routed.form)
        (self.client, self.limit, budget) = (client, min(limit, site.uploads.largest), site.uploads)
    }

    deinit { budget.release(held.withLock { $0 }, of: client) }

    /// Reserves memory for the first `count` bytes of the body.
    ///
    /// - Throws: a `Problem` with status 413 if the body is too large, or 503 if other uploads use the memory.
    package func reserve(_ count: Int) throws(Problem) {
        guard count <= limit else {
            throw Problem(
                .bodyTooLarge,
                "the picture exceeds the maximum of \(limit) bytes (`limits.bytes`, or an eighth of the memory)")
        }
        // The picture is copied out of a form.
        let bytes = form == nil ? count : 2 * count
        try held.withLock { held throws(Problem) in
            guard bytes > held else { return }
            guard budget.reserve(bytes - held, for: client) else {
                throw Problem(
                    .overloaded, "other uploads use all of the memory reserved for them; try again later")
            }
            held = bytes
        }
    }

    package static func == (left: UploadPermit, right: UploadPermit) -> Bool { left === right }
    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

/// Limits the total size of pictures that clients are uploading or waiting for, to a quarter of the machine's memory at
/// most. One client may use half of it.
final class UploadBudget: Sendable {
    private let limit: Int
    private let held = Mutex((total: 0, clients: [String: Int]()))

    /// - Parameter largest: The maximum size of a picture, in bytes.
    init(largest: Int) { limit = 4 * min(largest, MachineMemory.bytes / 16) }

    /// The maximum size of one picture, in bytes.
    var largest: Int { limit / 2 }

    /// The bytes that are held now.
    var bytes: Int { held.withLock { $0.total } }

    fileprivate func reserve(_ bytes: Int, for client: String) -> Bool {
        held.withLock { held in
            let own = held.clients[client, default: 0] + bytes
            guard held.total + bytes <= limit, own <= limit / 2 else { return false }
            held.total += bytes
            held.clients[client] = own
            return true
        }
    }

    fileprivate func release(_ bytes: Int, of client: String) {
        guard bytes > 0 else { return }
        held.withLock { held in
            held.total -= bytes
            let own = held.clients[client, default: 0] - bytes
            held.clients[client] = own > 0 ? own : nil
        }
    }
}

/// Variants of pictures that clients send (`server.uploads`).
extension Site {
    /// Whether the body of a request may be a picture. The limit for other bodies does not apply to it.
    package func isUpload(_ request: ServerRequest) -> Bool {
        request.method == "POST" && settings.uploads
            && settings.route(of: RequestTarget(request.target))?.grammar?.takesUploads == true
    }

    /// The methods that the route of a grammar supports.
    func methods(of grammar: any Grammar) -> [String] {
        grammar.methods + (settings.uploads && grammar.takesUploads ? ["POST"] : [])
    }

    /// Decides whether the body of a request is read. Everything that does not depend on the body is checked before.
    package func intake(of request: ServerRequest) -> BodyIntake {
        guard isUpload(request) else { return wantsBody(of: request) ? .wanted : .unneeded }
        do throws(Problem) {
            var request = request
            guard try redirect(ifNeeded: &request) == nil else { return .unneeded }
            guard let grammar = settings.route(of: RequestTarget(request.target))?.grammar else { return .unneeded }
            return .upload(try permit(request, grammar))
        } catch {
            return .refused(error)
        }
    }

    private func permit(_ request: ServerRequest, _ grammar: any Grammar) throws(Problem) -> UploadPermit {
        try admitRoute(request, grammar)
        let routed = try read(request, grammar)
        try settings.loop.check(request.fields)
        try rules.referrers.check(request.fields)
        let codings = request.fields.values(of: "content-encoding")
        guard codings.allSatisfy({ $0.lowercased() == "identity" }) else {
            throw Problem(.notAnImage, "send the picture without a content coding")
        }
        var asked = ImageRequest(.bytes([], name: ""))
        switch routed.answer {
        case .variant(let text):
            let (recipe, negotiated) = try recipe(text, request)
            asked.recipe = try settings.recipes.admitted(recipe, text: text)
            asked.negotiated = negotiated ?? []
        case .choice(let choice): asked.choice = choice
        case .original, .info, .information, .redirect:
            throw Self.refusal(of: request.method, allowed: RoutedRequest.methods)
        }
        let permit = UploadPermit(
            asked, routed, RateLimit.network(request.client ?? ""), pipeline.limits.bytes, self)
        try permit.reserve(request.combined("content-length").map { Int($0) ?? .max } ?? 0)
        // The body decides whether the variant is already stored, so each upload counts.
        do throws(PipelineError) { try settings.rate?.check(request.client, now: now()) } catch {
            throw Problem(error)
        }
        return permit
    }

    /// Responds with a variant of the picture in the body. Its name in the caches is the digest of its bytes.
    ///
    /// The response has no validators, because they would describe the resource of the URL (RFC 9110 §8.8). It also
    /// allows no storing: no GET could use it (RFC 9110 §9.3.3).
    func upload(_ request: ServerRequest, _ grammar: any Grammar) async throws(Problem) -> ServerResponse {
        let permit: UploadPermit
        switch request.intake ?? intake(of: request) {
        case .upload(let given): permit = given
        case .refused(let problem): throw problem
        case .unneeded, .wanted:
            let isForUploads = grammar is any MountableGrammar
            let hint =
                settings.uploads || !isForUploads ? "" : "; pictures can be sent if `server.uploads` is true"
            throw Self.refusal(of: request.method, allowed: methods(of: grammar), hint)
        }
        try permit.reserve(request.body.count)
        let picture = try permit.form?.content(of: request.body) ?? request.body
        var asked = permit.asked
        asked.source = .bytes(picture, name: "the uploaded picture")
        let image: ImageResponse
        do throws(PipelineError) { image = try await pipeline.respond(to: asked) } catch {
            let problem = Problem(error)
            guard let response = await fallback(for: problem, asked, variesByAccept: false) else { throw problem }
            return response
        }
        var response = VariantAnswer.response(image, varying: [], caching: caching, isAtHand: true, now: now())
        response.fields.removeAll {
            ["Accept-Ranges", "Cache-Control", "ETag", "Last-Modified"].contains($0.name)
        }
        response.fields.append(HeaderField("Cache-Control", "no-store"))
        permit.present(&response, PresentedPicture(image, now: now()))
        return response
    }
}
