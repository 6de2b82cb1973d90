import HTTPCaching
import PipelineCaching
import PipelineSupport
import Synchronization
import Variants

/// Decodes content codings of bodies. Each body is decoded once for all concurrent requests, on a separate thread that
/// other work does not use. The latest results are kept, including errors.
final class ContentDecoder: Sendable {
    typealias Outcome = Result<[UInt8], RenderError>
    typealias Decode = @Sendable (_ codings: ContentCodings, _ sent: [UInt8]) throws(RenderError) -> [UInt8]

    /// A body and its codings.
    private struct Key: Hashable {
        var digest: String
        var codings: ContentCodings
    }

    private struct State {
        var kept: [Key: Outcome] = [:]
        /// The keys of `kept`, oldest first.
        var order: [Key] = []
        var byteCount = 0
        var waiting: [Key: [CheckedContinuation<Outcome, Never>]] = [:]
        var thread: OwnedThreads?
    }

    /// The maximum number of results kept, and their maximum total size in bytes.
    private static let (countLimit, byteLimit) = (1024, 32 << 20)

    private let threads: OwnedThreads
    private let decode: Decode
    private let state = Mutex(State())

    /// - Parameter threads: the threads that read files.
    init(threads: OwnedThreads, decode: @escaping Decode) { (self.threads, self.decode) = (threads, decode) }

    /// Returns the decoded bytes of a picture.
    ///
    /// - Parameters:
    ///   - digest: the digest of the body as received.
    ///   - fields: the header fields of the response, which declare the codings.
    func picture(_ body: EntryBody, _ digest: String, _ fields: [HeaderField]) async throws(RenderError) -> [UInt8] {
        guard let codings = ContentCodings(fields) else {
            if case .bytes(let bytes) = body { return bytes }
            return try await threads.result { () throws(RenderError) in try body.sent() }
        }
        let key = Key(digest: digest, codings: codings)
        let outcome = await withCheckedContinuation { continuation in
            let (known, thread) = state.withLock { state -> (Outcome?, OwnedThreads?) in
                if let known = state.kept[key] { return (known, nil) }
                state.waiting[key, default: []].append(continuation)
                guard state.waiting[key]?.count == 1 else { return (nil, nil) }
                let thread = state.thread ?? OwnedThreads(count: 1)
                state.thread = thread
                return (nil, thread)
            }
            if let known { continuation.resume(returning: known) }
            thread?.submit { [self] in finish(key, body) }
        }
        return try outcome.get()
    }

    /// Returns the same bytes as `picture(_:_:_:)` without suspending, from the kept results or by decoding again.
    /// Blocks. Returns nil if decoding fails.
    func decodedAgain(_ body: EntryBody, _ digest: String, _ fields: [HeaderField]) -> [UInt8]? {
        guard let codings = ContentCodings(fields) else { return try? body.sent() }
        // An error was already reported when the bytes were first decoded.
        if let known = state.withLock({ $0.kept[Key(digest: digest, codings: codings)] }) { return try? known.get() }
        return try? decode(codings, body.sent())
    }

    /// Returns the header of a body after decoding the codings that the fields declare.
    func header(
        _ body: EntryBody, _ digest: String, _ fields: [HeaderField]
    ) async throws(RenderError) -> ImageHeader {
        if case .file = body, ContentCodings(fields) == nil {
            return try await threads.result { () throws(RenderError) in try body.probe() }
        }
        return try ImageHeader.probe(await picture(body, digest, fields))
    }

    private func finish(_ key: Key, _ body: EntryBody) {
        var isLasting = false
        let outcome = Outcome { () throws(RenderError) in
            let sent = try body.sent()
            isLasting = true
            return try decode(key.codings, sent)
        }
        if case .failure(let error) = outcome, error.code == .overBudget { isLasting = false }
        let waiting = state.withLock { state in
            if isLasting { Self.keep(outcome, for: key, &state) }
            return state.waiting.removeValue(forKey: key) ?? []
        }
        for continuation in waiting { continuation.resume(returning: outcome) }
    }

    private static func keep(_ outcome: Outcome, for key: Key, _ state: inout State) {
        let bytes = { (outcome: Outcome?) in (try? outcome?.get().count) ?? 0 }
        guard bytes(outcome) <= byteLimit, state.kept.updateValue(outcome, forKey: key) == nil else { return }
        state.order.append(key)
        state.byteCount += bytes(outcome)
        while state.order.count > countLimit || state.byteCount > byteLimit {
            state.byteCount -= bytes(state.kept.removeValue(forKey: state.order.removeFirst()))
        }
    }
}
