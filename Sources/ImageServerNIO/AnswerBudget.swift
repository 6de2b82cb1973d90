import Glibc
import ImageServer
import PipelineSupport
import Synchronization

/// Limits the total size of the bodies that responses hold while they are sent, over all connections of a server.
/// Bodies are in memory or in unnamed files. The budgets of the caches do not include them, because a body may never
/// have been stored or may have been evicted.
///
/// - A file with a name, in the cache folder or in an operator's folder, does not count, because reading it takes no
///   extra space.
/// - A body counts once, regardless of how many responses hold it. A body that exceeds the budget is refused with a 503
///   rather than queued. A queued response would hold resources that it is waiting for. A downstream cache can react to
///   a 503 (use a stale copy or try another server), but not to a delay.
/// - One address may use at most a quarter of the budget. Bodies larger than `smallBytes` may use at most three
///   quarters of either limit. Slow readers of large originals therefore leave room for pictures, and one client leaves
///   room for others.
/// - Bodies up to `ConnectionHandler.partBytes`, and copied parts of that size, do not count, because the number of
///   connections limits them.
final class AnswerBudget: Sendable {
    /// The totals of all connections of one address. Each connection without an address has a separate account.
    final class Account: Sendable {
        fileprivate let budget: AnswerBudget
        fileprivate let bytes = Atomic(0)
        /// The number of connections with a request in progress.
        let requests = Atomic(0)

        init(_ budget: AnswerBudget) { self.budget = budget }
    }

    /// The identity of a body.
    fileprivate enum Body: Hashable {
        /// The device and inode of a file.
        case file(dev_t, ino_t)
        /// The address of the array that contains the body.
        case memory(UInt)

        /// Returns the body of a response and the number of bytes that exist only because the response holds the body.
        /// Returns nil if the file's status cannot be read. In that case, reading the file would also fail.
        static func held(by response: ServerResponse) -> (Body, bytes: Int)? {
            guard let part = response.file else { return (Body(response.body), response.body.count) }
            var status = stat()
            guard fstat(part.file.descriptor, &status) == 0 else { return nil }
            return (.file(status.st_dev, status.st_ino), status.st_nlink > 0 ? 0 : part.file.count)
        }

        init(_ bytes: ArraySlice<UInt8>) {
            // A slice has the same indices as its array.
            self = .memory(bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } &- UInt(bytes.startIndex))
        }
    }

    private struct HeldBody {
        var bytes: Int
        var answers = 1
        /// The account of the first response that held the body.
        var account: Account
    }

    private let limit: Int
    private let total = Atomic(0)
    private let held = Mutex<[Body: HeldBody]>([:])

    /// The maximum size of a body that is treated as a picture rather than an original, in bytes.
    private static let smallBytes = 1 << 20

    /// - Parameter limit: The maximum total size of bodies, in bytes.
    init(limit: Int) { self.limit = limit }

    /// The total size of the bodies that are held now, in bytes.
    var bytes: Int { total.load(ordering: .relaxed) }

    /// The number of responses that hold a body now.
    var answers: Int { held.withLock { $0.values.reduce(0) { $0 + $1.answers } } }

    fileprivate func hold(_ body: Body, _ bytes: Int, _ account: Account) -> Bool {
        held.withLock { held in
            if (held[body]?.answers += 1) != nil { return true }
            guard bytes == 0 || reserve(bytes, account, of: bytes > Self.smallBytes ? limit / 4 * 3 : limit) else {
                return false
            }
            held[body] = HeldBody(bytes: bytes, account: account)
            return true
        }
    }

    fileprivate func release(_ body: Body) {
        held.withLock { held in
            guard var entry = held[body] else { return }
            entry.answers -= 1
            held[body] = entry.answers > 0 ? entry : nil
            if entry.answers == 0 { release(entry.bytes, entry.account) }
        }
    }

    private func reserve(_ bytes: Int, _ account: Account, of bound: Int) -> Bool {
        let (all, own) = (
            total.add(bytes, ordering: .relaxed).newValue, account.bytes.add(bytes, ordering: .relaxed).newValue
        )
        if all <= bound, own <= bound / 4 { return true }
        release(bytes, account)
        return false
    }

    private func release(_ bytes: Int, _ account: Account) {
        total.subtract(bytes, ordering: .relaxed)
        account.bytes.subtract(bytes, ordering: .relaxed)
    }
}

/// The part of the budget that one response holds. Used only on the event loop of its connection.
final class AnswerClaim {
    private let account: AnswerBudget.Account
    private let freeBodyBytes: Int
    /// The body and its bytes. Keeping the bytes prevents another array from getting the address that identifies the
    /// body.
    private var body: (name: AnswerBudget.Body, bytes: ArraySlice<UInt8>)?

    /// - Parameter freeBodyBytes: The maximum size of a body that is always sent, in bytes.
    init(_ account: AnswerBudget.Account, freeBodyBytes: Int) {
        (self.account, self.freeBodyBytes) = (account, freeBodyBytes)
    }

    deinit { release() }

    /// Reserves space in the budget for the response's body and returns the response. Returns a 503 if the body exceeds
    /// the budget.
    func admitted(_ response: ServerResponse, isHead: Bool, now: Double) -> ServerResponse {
        guard !isHead, response.mayHaveBody, response.file != nil || response.body.count > freeBodyBytes else {
            return response
        }
        guard let (body, bytes) = AnswerBudget.Body.held(by: response), !reserve(body, response.body, bytes) else {
            return response
        }
        var refusal = Self.refused(response.route, now: now)
        // Pages that may read the response may also read the refusal.
        refusal.fields += response.fields.filter(CrossOriginRule.isOwn)
        return refusal
    }

    /// - Parameter route: The route of the request.
    static func refused(_ route: Route?, now: Double) -> ServerResponse {
        var response = refusal.response(of: route?.grammar, now: now)
        response.route = route
        return response
    }

    /// Reserves space for a body in memory. Returns whether the body fits in the budget.
    func reserve(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count <= freeBodyBytes || reserve(AnswerBudget.Body(bytes), bytes, bytes.count)
    }

    private static let refusal = Problem(
        .overloaded, "responses that clients are still reading use all of the memory reserved for them; try again later"
    )

    private func reserve(_ body: AnswerBudget.Body, _ bytes: ArraySlice<UInt8>, _ count: Int) -> Bool {
        release()
        guard account.budget.hold(body, count, account) else { return false }
        self.body = (body, bytes)
        return true
    }

    /// Releases the body after the response has been sent or abandoned.
    func release() {
        guard let body else { return }
        self.body = nil
        account.budget.release(body.name)
    }
}
