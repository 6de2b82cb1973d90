import HTTPCaching
import Pipeline
import PipelineCaching
import Synchronization

/// An answer from memory, ready to be written: a head as HTTP/1.1 frames it, and a body.
public struct PreparedAnswer: Sendable {
    /// 200 or 304.
    public let status: Int
    /// The status line and the fields up to the empty line, for a connection that stays open.
    public let head: [UInt8]
    /// Empty for HEAD and for a 304.
    public let body: [UInt8]
    /// Bytes of the body that a GET carries, for the log; 0 for a 304.
    public let length: Int
    /// What the log says beside the status.
    public let note: String?
    /// The picture that a GET carries, for the log.
    package let picture: AnswerPicture?
}

/// What a request must not have, and what of it selects a prepared answer. Anything else asks in full.
struct HitQuery {
    private(set) var accept: String?
    private(set) var ifNoneMatch: String?
    private(set) var ifModifiedSince: String?
    private(set) var origin: String?
    let isHead: Bool

    private enum Meaning { case host, accept, noneMatch, modifiedSince, origin, connection, control, needsStages }

    /// Fields that have a say; all others have none.
    private static let meanings: [(name: String, meaning: Meaning)] = [
        ("host", .host), ("accept", .accept), ("connection", .connection), ("if-none-match", .noneMatch),
        ("if-modified-since", .modifiedSince), ("origin", .origin), ("cache-control", .control), ("pragma", .control),
        ("range", .needsStages), ("if-range", .needsStages), ("if-match", .needsStages),
        ("if-unmodified-since", .needsStages), ("transfer-encoding", .needsStages), ("content-length", .needsStages),
        ("expect", .needsStages), ("upgrade", .needsStages),
    ]

    /// nil if a field has a say that prepared answers do not know: a range, a body, another connection.
    ///
    /// - Parameter settings: decides which of the client's fields count.
    init?(method: String, fields: [HeaderField], _ settings: ServerConfiguration) {
        guard method == "GET" || method == "HEAD", !settings.forwarded.areAll else { return nil }
        isHead = method == "HEAD"
        var hosts = 0
        for field in fields {
            switch Self.meanings.first(where: { FieldLines.isSameName($0.name, field.name) })?.meaning {
            case .host:
                hosts += 1
                guard RequestAdmission.isHost(field.value) else { return nil }
            case .accept:
                accept = accept.map { $0 + ", " + field.value } ?? field.value
            case .noneMatch:
                guard ifNoneMatch == nil else { return nil }
                ifNoneMatch = field.value
            case .modifiedSince:
                guard ifModifiedSince == nil else { return nil }
                ifModifiedSince = field.value
            case .origin:
                guard origin == nil else { return nil }
                origin = field.value
            case .connection:
                guard FieldLines.isSameName(field.value, "keep-alive") else { return nil }
            case .needsStages: return nil
            case .control:
                guard !settings.honoursClientNoCache else { return nil }
            case nil: break
            }
            if !settings.forwarded.isEmpty, settings.forwarded.contains(field.name) { return nil }
        }
        guard hosts == 1, settings.referrers.admits(fields) else { return nil }
    }
}

/// Answers that memory can give again, by target: the path from a request to its answer without the stages between.
///
/// What is kept for each is a head, made again at most once a second, and the way to its body. Bodies stay in the
/// pipeline's memory tiers, within their budgets.
final class PreparedAnswers: Sendable {
    struct Key: Hashable {
        var target: String
        /// The formats that the client accepts, where the output depends on it; else empty.
        var formats: [UInt8]
        /// The origin of the page that asks, if the answer's fields depend on it.
        var origin: String?
    }

    /// One answer and its heads.
    final class Entry: Sendable {
        private struct Heads {
            var second = Int.min
            var whole: [UInt8] = []
            var notModified: [UInt8] = []
            var note: String?
        }

        let answer: MemoryAnswer
        /// Unix seconds from when to when the answer is fresh.
        let fresh: Range<Double>
        /// What conditions of the client are compared with.
        private let validators: [HeaderField]
        private let etag: String?
        /// What it takes at most, with two heads and the record they are made of.
        let bytes: Int
        private let length: Int
        private let picture: AnswerPicture?
        /// The answer without its body, at a time, from a tier.
        let response: @Sendable (_ now: Double, _ tier: TierName) -> ServerResponse
        private let heads = Mutex(Heads())

        /// - Parameters:
        ///   - fresh: Unix seconds.
        ///   - length: bytes of the body.
        ///   - response: the answer without its body, at a time, from a tier.
        init(
            _ answer: MemoryAnswer, fresh: Range<Double>, length: Int,
            response: @escaping @Sendable (_ now: Double, _ tier: TierName) -> ServerResponse
        ) {
            self.answer = answer
            self.fresh = fresh
            self.length = length
            self.response = response
            let first = response(fresh.lowerBound, .memory)
            let fields = first.fields
            picture = first.picture
            validators = fields.filter { ["ETag", "Last-Modified"].contains($0.name) }
            etag = fields.first("etag")
            bytes = fields.reduce(1_024) { $0 + 4 * ($1.name.utf8.count + $1.value.utf8.count) }
        }

        func prepared(_ body: [UInt8], for query: HitQuery, now: Double) -> PreparedAnswer {
            let isUnchanged = isUnchanged(for: query, now: now)
            return heads.withLock { heads in
                if heads.second != Int(now) {
                    let whole = response(now, .memory)
                    heads.second = Int(now)
                    heads.whole = whole.headBytes(keepsAlive: true, length: length)
                    heads.note = whole.note
                    heads.notModified =
                        ServerResponse(status: 304, fields: Preconditions.notModifiedFields(whole.fields))
                        .headBytes(keepsAlive: true)
                }
                return PreparedAnswer(
                    status: isUnchanged ? 304 : 200, head: isUnchanged ? heads.notModified : heads.whole,
                    body: isUnchanged || query.isHead ? [] : body, length: isUnchanged ? 0 : length, note: heads.note,
                    picture: picture)
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

    /// The longest target that is prepared, in bytes: hashing a longer one would hold up the other event loops.
    static let targetLimit = 2_048

    /// Answers by key, the recent ones and those before them: what is not asked for again while `limit` bytes of others
    /// are, is forgotten.
    private struct State {
        var recent: [Key: Entry] = [:]
        var former: [Key: Entry] = [:]
        var bytes = 0
    }

    private let state = Mutex(State())
    private let limit: Int

    /// - Parameter limit: bytes that recent entries take; those before them take as many at most.
    init(limit: Int) { self.limit = limit }

    /// - Parameter budgets: bytes of the bodies in memory. Few answers are prepared for little memory, but some in any case:
    ///   their bodies may be on disk.
    convenience init(budgets: Int) { self.init(limit: min(max(budgets / 8, 4 << 20), 16 << 20)) }

    func entry(for key: Key) -> Entry? {
        guard key.target.utf8.count <= Self.targetLimit else { return nil }
        // What is forgotten is released outside the lock.
        let (entry, _) = state.withLock { state -> (Entry?, [Key: Entry]) in
            if let entry = state.recent[key] { return (entry, [:]) }
            guard let entry = state.former[key] else { return (nil, [:]) }
            return (entry, keep(entry, for: key, &state))
        }
        return entry
    }

    /// Keeps an answer, unless it is too large to be worth it.
    func keep(_ entry: Entry, for key: Key) {
        guard key.target.utf8.count <= Self.targetLimit, entry.bytes <= limit / 256 else { return }
        _ = state.withLock { keep(entry, for: key, &$0) }
    }

    func remove(_ key: Key) {
        state.withLock { state in
            state.recent[key] = nil
            state.former[key] = nil
        }
    }

    /// - Returns: what is forgotten, to be released outside the lock.
    private func keep(_ entry: Entry, for key: Key, _ state: inout State) -> [Key: Entry] {
        var forgotten: [Key: Entry] = [:]
        if state.bytes >= limit {
            forgotten = state.former
            state.former = state.recent
            (state.recent, state.bytes) = ([:], 0)
        }
        state.bytes += entry.bytes + key.target.utf8.count
        state.recent[key] = entry
        return forgotten
    }
}
