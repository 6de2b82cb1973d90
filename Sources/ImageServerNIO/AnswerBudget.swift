import Glibc
import ImageServer
import PipelineSupport
import Synchronization

/// The bytes that answers on their way hold, over all connections of a server: bodies in memory or in files without a
/// name, and copies of the parts that are being sent. The caches' budgets do not count them: a body may never have been
/// stored, or have been evicted since.
///
/// - A file that has a name, in the cache folder or in one of the operator's, takes no space because it is being read.
/// - A body counts once, however many answers hold it. One that does not fit is refused with a 503 instead of being
///   queued: an answer that waited would hold what it waits for, and a cache in front does something about a 503 (it
///   uses a stale copy or asks another server) but nothing about silence.
/// - A part that does not fit is shorter, never later, so no answer waits for another one.
/// - One address has at most a quarter, and bodies above `smallBytes` get at most three quarters of both bounds: slow
///   readers of long originals leave room for pictures, and one client leaves room for the others.
final class AnswerBudget: Sendable {
    /// The sums of all connections of one address. Each connection without an address has its own account.
    final class Account: Sendable {
        fileprivate let budget: AnswerBudget
        fileprivate let bytes = Atomic(0)
        /// Connections with a request in progress.
        let requests = Atomic(0)

        init(_ budget: AnswerBudget) { self.budget = budget }
    }

    /// What one connection holds.
    final class Share: Sendable {
        fileprivate let account: Account
        /// Bytes of parts.
        fileprivate let parts = Atomic(0)
        /// Bytes that the client has taken of all answers.
        fileprivate let taken = Atomic(0)

        init(_ account: Account) { self.account = account }
    }

    /// Which body it is.
    fileprivate enum Body: Hashable {
        /// Device and inode.
        case file(dev_t, ino_t)
        /// Address of the array that holds it.
        case memory(UInt)

        /// The body of a response, and the bytes that are there only because it is held; nil if the file's status cannot be
        /// read, since reading its bytes will fail then, too.
        static func held(by response: ServerResponse) -> (Body, bytes: Int)? {
            guard let part = response.file else { return (Body(response.body), response.body.count) }
            var status = stat()
            guard fstat(part.file.descriptor, &status) == 0 else { return nil }
            return (.file(status.st_dev, status.st_ino), status.st_nlink > 0 ? 0 : part.file.count)
        }

        init(_ bytes: ArraySlice<UInt8>) {
            // Slices of an array keep its indices.
            self = .memory(bytes.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) } &- UInt(bytes.startIndex))
        }
    }

    private struct Held {
        var bytes: Int
        var answers = 1
        /// Of the first answer.
        var account: Account
    }

    private let limit: Int
    private let total = Atomic(0)
    private let held = Mutex<[Body: Held]>([:])

    /// Bytes up to which a body is a picture rather than an original.
    private static let smallBytes = 1 << 20
    /// Bytes of parts that one connection may have beyond the least that every answer has.
    private static let partsPerConnection = 256 << 10

    /// - Parameter limit: bytes.
    init(limit: Int) { self.limit = limit }

    /// Bytes that are held now.
    var bytes: Int { total.load(ordering: .relaxed) }

    /// Answers that hold a body now.
    var answers: Int { held.withLock { $0.values.reduce(0) { $0 + $1.answers } } }

    fileprivate func hold(_ body: Body, _ bytes: Int, _ account: Account) -> Bool {
        held.withLock { held in
            if (held[body]?.answers += 1) != nil { return true }
            guard bytes == 0 || take(bytes, account, of: bytes > Self.smallBytes ? limit / 4 * 3 : limit) else {
                return false
            }
            held[body] = Held(bytes: bytes, account: account)
            return true
        }
    }

    fileprivate func release(_ body: Body) {
        held.withLock { held in
            guard var entry = held[body] else { return }
            entry.answers -= 1
            held[body] = entry.answers > 0 ? entry : nil
            if entry.answers == 0 { give(entry.bytes, entry.account) }
        }
    }

    fileprivate func takePart(_ bytes: Int, _ share: Share) -> Bool {
        if share.parts.add(bytes, ordering: .relaxed).newValue <= Self.partsPerConnection,
            take(bytes, share.account, of: limit)
        {
            return true
        }
        share.parts.subtract(bytes, ordering: .relaxed)
        return false
    }

    fileprivate func givePart(_ bytes: Int, _ share: Share) {
        share.parts.subtract(bytes, ordering: .relaxed)
        give(bytes, share.account)
    }

    private func take(_ bytes: Int, _ account: Account, of bound: Int) -> Bool {
        let (all, own) = (
            total.add(bytes, ordering: .relaxed).newValue, account.bytes.add(bytes, ordering: .relaxed).newValue
        )
        if all <= bound, own <= bound / 4 { return true }
        give(bytes, account)
        return false
    }

    private func give(_ bytes: Int, _ account: Account) {
        total.subtract(bytes, ordering: .relaxed)
        account.bytes.subtract(bytes, ordering: .relaxed)
    }
}

/// What one answer holds of the budget. Belongs to the event loop of its connection.
final class AnswerClaim {
    private let share: AnswerBudget.Share
    private let partBytes: Int
    private let leastPart: Int
    /// With its bytes, so that no other array gets the address by which it is known.
    private var body: (name: AnswerBudget.Body, bytes: ArraySlice<UInt8>)?
    private var part = 0
    /// Bytes of the part that was handed over last.
    private var handedOver = 0
    /// Bytes of other answers that the client had taken before this one began.
    private var takenBefore = 0
    private var taken = 0

    /// - Parameters:
    ///   - partBytes: of an answer's part, if there is room for it.
    ///   - leastPart: of a part that an answer always gets, and of a body that is always sent; neither is counted.
    init(_ share: AnswerBudget.Share, partBytes: Int, leastPart: Int) {
        self.share = share
        self.partBytes = partBytes
        self.leastPart = leastPart
    }

    deinit { release() }

    /// The answer, whose body is held from now on, or a 503 if there is no room for it.
    func admitted(_ response: ServerResponse, isHead: Bool, now: Double) -> ServerResponse {
        guard !isHead, response.mayHaveBody, response.file != nil || response.body.count > leastPart else {
            return response
        }
        guard let (body, bytes) = AnswerBudget.Body.held(by: response), !holds(body, response.body, bytes) else {
            return response
        }
        return Self.refusal.response(now: now)
    }

    /// Whether there is room for a body in memory, which is held from now on.
    func holds(_ bytes: ArraySlice<UInt8>) -> Bool {
        bytes.count <= leastPart || holds(AnswerBudget.Body(bytes), bytes, bytes.count)
    }

    static let refusal = Problem(
        .overloaded, "answers that clients are still reading take as many bytes as there may be of them")

    private func holds(_ body: AnswerBudget.Body, _ bytes: ArraySlice<UInt8>, _ count: Int) -> Bool {
        release()
        guard share.account.budget.hold(body, count, share.account) else { return false }
        self.body = (body, bytes)
        return true
    }

    /// Sending begins.
    func begins() {
        takenBefore = share.taken.load(ordering: .relaxed)
        (handedOver, taken) = (0, 0)
    }

    /// Bytes that the client has taken of the connection's other answers since this one began.
    var takenOfOthers: Int { share.taken.load(ordering: .relaxed) - takenBefore - taken }

    /// Bytes of the next part, which are held until the one after it; the client has taken the previous one.
    ///
    /// - Parameter rest: bytes that are still to be sent.
    func nextPart(of rest: Int) -> Int {
        givePart()
        share.taken.add(handedOver, ordering: .relaxed)
        taken += handedOver
        handedOver = min(rest, partBytes)
        if handedOver > leastPart {
            if share.account.budget.takePart(handedOver, share) { part = handedOver } else { handedOver = leastPart }
        }
        return handedOver
    }

    /// The answer is sent, or will not be.
    func release() {
        givePart()
        guard let body else { return }
        self.body = nil
        share.account.budget.release(body.name)
    }

    private func givePart() {
        guard part > 0 else { return }
        share.account.budget.givePart(part, share)
        part = 0
    }
}
