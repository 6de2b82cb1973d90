import HTTPCaching
import Pipeline
import PipelineCaching
import Synchronization

/// A response from memory, ready to be written: the serialized HTTP/1.1 headers and the body.
package struct PreparedAnswer: Sendable {
    /// The status code: 200, 206 or 304.
    package let status: Int
    /// The status line and header fields, including the empty line, for a connection that stays open.
    package let head: [UInt8]
    /// The body. It is empty for HEAD and for a 304.
    package let body: [UInt8]
    /// The length of the body that a GET receives, in bytes, for the log. It is 0 for a 304.
    package let length: Int
    /// The note that the log shows after the status.
    package let note: String?
    /// The picture in the response to a GET, for the log.
    package let picture: AnswerPicture?
    package let route: Route?
}

/// The parts of a request that select a prepared response. Requests with other relevant fields are handled by
/// `respond(to:onInterim:)`.
struct HitQuery {
    private(set) var host: String?
    private(set) var accept: String?
    private(set) var ifNoneMatch: String?
    private(set) var ifModifiedSince: String?
    private(set) var origin: String?
    /// `Range`, `If-Range` and the two conditions above, in order. The array is empty if the request has no `Range`.
    private(set) var selecting: [HeaderField] = []
    let isHead: Bool

    private enum Meaning {
        case host, accept, noneMatch, modifiedSince, range, ifRange, origin, connection, control, needsStages
    }

    /// The fields that affect the response. Other fields are ignored.
    private static let meanings: [(name: String, meaning: Meaning)] = [
        ("host", .host), ("accept", .accept), ("connection", .connection), ("if-none-match", .noneMatch),
        ("if-modified-since", .modifiedSince), ("origin", .origin), ("cache-control", .control), ("pragma", .control),
        ("range", .range), ("if-range", .ifRange), ("if-match", .needsStages),
        ("if-unmodified-since", .needsStages), ("transfer-encoding", .needsStages), ("content-length", .needsStages),
        ("expect", .needsStages), ("upgrade", .needsStages),
    ]

    /// Returns nil if the request has a feature that prepared responses do not support: `If-Match`, a body, or a
    /// connection option.
    ///
    /// - Parameter site: The site, which decides which of the client's fields affect the response.
    init?(method: String, fields: [HeaderField], _ site: Site) {
        let rules = site.rules
        guard method == "GET" || method == "HEAD", !rules.forwarded.areAll else { return nil }
        isHead = method == "HEAD"
        var (hosts, hasRange) = (0, false)
        for field in fields {
            switch Self.meanings.first(where: { FieldLines.isSameName($0.name, field.name) })?.meaning {
            case .host:
                hosts += 1
                guard RequestAdmission.isHost(field.value) else { return nil }
                host = field.value
            case .accept:
                accept = accept.map { $0 + ", " + field.value } ?? field.value
            case .noneMatch:
                guard ifNoneMatch == nil else { return nil }
                ifNoneMatch = field.value
                selecting.append(field)
            case .modifiedSince:
                guard ifModifiedSince == nil else { return nil }
                ifModifiedSince = field.value
                selecting.append(field)
            case .range:
                hasRange = true
                selecting.append(field)
            case .ifRange: selecting.append(field)
            case .origin:
                guard origin == nil else { return nil }
                origin = field.value
            case .connection:
                guard FieldLines.isSameName(field.value, "keep-alive") else { return nil }
            case .needsStages: return nil
            case .control:
                guard !site.settings.honorsClientNoCache else { return nil }
            case nil: break
            }
            if !rules.forwarded.isEmpty, rules.forwarded.contains(field.name) { return nil }
        }
        guard hosts == 1, rules.referrers.admits(fields) else { return nil }
        // Without `Range`, `If-Range` is ignored (RFC 9110 §13.1.5).
        if !hasRange { selecting = [] }
    }
}

/// Responses that can be sent from memory, by request target. A prepared response skips the stages of the pipeline.
///
/// Each entry contains the serialized headers, which are updated at most once per second, and the key of the body.
/// Bodies stay in the pipeline's memory tiers, within the budgets of those tiers.
final class PreparedAnswers: Sendable {
    struct Key: Hashable {
        var target: String
        /// The formats that the client accepts, if the output depends on them. Otherwise, the array is empty.
        var formats: [UInt8]
        /// The origin of the requesting page, if the response's header fields depend on it.
        var origin: String?
        /// The scheme and host that the client used, if the response's header fields depend on them.
        var base: String?
    }

    /// A response and its serialized headers.
    final class Entry: Sendable {
        /// The headers of the entry's responses within one second.
        private struct Heads {
            var second = Int.min
            /// The complete response without its body.
            var answer = ServerResponse(status: 200, fields: [])
            var whole: [UInt8] = []
            var notModified: [UInt8] = []
        }

        let answer: MemoryAnswer
        /// The time during which the response is fresh, in Unix seconds.
        let fresh: Range<Double>
        /// The validators that a client's conditions are compared with.
        private let validators: [HeaderField]
        private let etag: String?
        /// The maximum memory that the entry uses, in bytes, including two sets of headers, their fields and the
        /// record.
        let bytes: Int
        private let length: Int
        private let picture: AnswerPicture?
        private let route: Route
        /// Returns the response without its body, for a time and a tier.
        let response: @Sendable (_ now: Double, _ tier: TierName) -> ServerResponse
        private let heads = Mutex(Heads())

        /// - Parameters:
        ///   - fresh: The time during which the response is fresh, in Unix seconds.
        ///   - length: The length of the body, in bytes.
        ///   - response: A closure that returns the response without its body, for a time and a tier.
        init(
            _ answer: MemoryAnswer, route: Route, fresh: Range<Double>, length: Int,
            response: @escaping @Sendable (_ now: Double, _ tier: TierName) -> ServerResponse
        ) {
            self.answer = answer
            self.route = route
            self.fresh = fresh
            self.length = length
            self.response = response
            let first = response(fresh.lowerBound, .memory)
            let fields = first.fields
            picture = first.picture
            validators = fields.filter { ["ETag", "Last-Modified"].contains($0.name) }
            etag = fields.first("etag")
            bytes = fields.reduce(1_024) { $0 + 5 * ($1.name.utf8.count + $1.value.utf8.count) }
        }

        /// Returns the prepared response, or nil if its status is not 200, 206 or 304.
        func prepared(_ body: [UInt8], for query: HitQuery, now: Double) -> PreparedAnswer? {
            let heads = heads(at: now)
            let note = heads.answer.note
            guard query.selecting.isEmpty else {
                var answer = heads.answer
                answer.body = body[...]
                answer = ConditionalAnswer.response(
                    answer, to: query.selecting, isHead: query.isHead, isOrigin: true, now: now)
                guard [200, 206, 304].contains(answer.status) else { return nil }
                return PreparedAnswer(
                    status: answer.status, head: answer.headBytes(keepsAlive: true),
                    body: query.isHead ? [] : Array(answer.body), length: answer.body.count, note: note,
                    picture: answer.picture, route: route)
            }
            let isUnchanged = isUnchanged(for: query, now: now)
            return PreparedAnswer(
                status: isUnchanged ? 304 : 200, head: isUnchanged ? heads.notModified : heads.whole,
                body: isUnchanged || query.isHead ? [] : body, length: isUnchanged ? 0 : length, note: note,
                picture: picture, route: route)
        }

        private func heads(at now: Double) -> Heads {
            heads.withLock { heads in
                guard heads.second != Int(now) else { return heads }
                let answer = response(now, .memory)
                heads = Heads(
                    second: Int(now), answer: answer, whole: answer.headBytes(keepsAlive: true, length: length),
                    notModified: ServerResponse(status: 304, fields: Preconditions.notModifiedFields(answer.fields))
                        .headBytes(keepsAlive: true))
                return heads
            }
        }

        private func isUnchanged(for query: HitQuery, now: Double) -> Bool {
            guard query.ifNoneMatch != nil || query.ifModifiedSince != nil else { return false }
            if let tag = query.ifNoneMatch, tag == etag { return true }
            var fields: [HeaderField] = []
            if let tag = query.ifNoneMatch { fields.append(HeaderField("If-None-Match", tag)) }
            if let date = query.ifModifiedSince { fields.append(HeaderField("If-Modified-Since", date)) }
            let stored = StoredResponse(status: 200, fields: validators, requestTime: now, responseTime: now)
            return Preconditions.evaluate(requestFields: fields, response: stored, isOrigin: true) == .notModified
        }
    }

    /// The maximum length of a prepared target, in bytes. Hashing a longer target would delay the other event loops.
    static let targetLimit = 2_048

    /// The responses by key, in two generations. A response is forgotten if it is not requested again while responses
    /// of `limit` bytes are added.
    private struct State {
        var recent: [Key: Entry] = [:]
        var former: [Key: Entry] = [:]
        var bytes = 0
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: The maximum size of the recent generation, in bytes. The older generation has the same
    ///   maximum.
    init(limit: Int) { self.limit = limit }

    /// - Parameter budgets: The memory tiers' budgets for bodies, in bytes. The limit is an eighth of the budgets,
    ///   between 4 and 16 MiB. The minimum applies even without memory tiers, because bodies may also be on disk.
    convenience init(budgets: Int) { self.init(limit: min(max(budgets / 8, 4 << 20), 16 << 20)) }

    func entry(for key: Key) -> Entry? {
        guard key.target.utf8.count <= Self.targetLimit else { return nil }
        // Removed entries are released outside the lock.
        let (entry, _) = state.withLock { state -> (Entry?, [Key: Entry]) in
            if let entry = state.recent[key] { return (entry, [:]) }
            guard let entry = state.former[key] else { return (nil, [:]) }
            return (entry, keep(entry, for: key, &state))
        }
        return entry
    }

    /// Adds a response, unless its target is longer than `targetLimit` or it takes more than 1/256 of `limit`.
    func keep(_ entry: Entry, for key: Key) {
        guard key.target.utf8.count <= Self.targetLimit, entry.bytes <= limit / 256 else { return }
        _ = state.withLock { keep(entry, for: key, &$0) }
    }

    func remove(_ key: Key) {
        state.withLock { state in
            if let entry = state.recent.removeValue(forKey: key) { state.bytes -= entry.bytes + key.target.utf8.count }
            state.former[key] = nil
        }
    }

    /// - Returns: The forgotten entries, which the caller releases outside the lock.
    private func keep(_ entry: Entry, for key: Key, _ state: inout State) -> [Key: Entry] {
        var forgotten: [Key: Entry] = [:]
        if state.bytes >= limit {
            forgotten = state.former
            state.former = state.recent
            (state.recent, state.bytes) = ([:], 0)
        }
        if let replaced = state.recent.updateValue(entry, forKey: key) {
            state.bytes -= replaced.bytes
        } else {
            state.bytes += key.target.utf8.count
        }
        state.bytes += entry.bytes
        return forgotten
    }
}
