import HTTPCaching
import PipelineCaching
import Variants

/// The identity of a request in a loader: everything that determines the bytes of the response.
struct LoadKey: Sendable, Hashable {
    private let source: ImageSource
    /// The address and length of the bytes. They identify a source that has no ID, because comparing or digesting the
    /// bytes would take the caller's time. The loader retains the request while the key is in use, so no other array
    /// can have this address.
    private let bytes: [Int]
    private let sourceID: String?
    private let recipe: String?
    private let negotiated: [ImageFormat]
    private let policy: CachePolicy?
    private let storage: StorageOptions.RawValue
    private let fields: [String]

    init(_ request: ImageRequest) {
        if case .bytes(let given, _) = request.source {
            source = .bytes([], name: "")
            let address = Int(bitPattern: given.withUnsafeBytes(\.baseAddress))
            bytes = request.sourceID == nil ? [address, given.count] : []
        } else {
            (source, bytes) = (request.source, [])
        }
        sourceID = request.sourceID
        recipe = request.recipe?.description
        negotiated = request.negotiated
        policy = request.policy
        storage = request.storage.rawValue
        fields = request.fields.map { "\($0.name.lowercased()): \($0.value)" }
    }
}

/// Decides which loads of a loader begin, and which are superseded by newer ones. A value type that does not start or
/// stop any load itself.
///
/// Each call takes O(log n) steps for each load that it returns.
struct LoaderQueue: Sendable {
    /// The number that identifies a load.
    typealias Member = UInt64

    /// A request in the queue, and all loads that share it.
    private struct QueuedRequest {
        /// The number of the first load of this request.
        let id: Member
        let key: LoadKey
        var loads: Set<Member> = []
        var prefetches: Set<Member> = []
        /// The number of loads with each priority, from least to most urgent.
        var urgencies = [0, 0, 0]
        /// The numbers of the first and the last load that made the request.
        var (first, last): (Member, Member)
        var isRunning = false

        /// Whether the request has only prefetches.
        var isPrefetch: Bool { loads.isEmpty }
        var isEmpty: Bool { loads.isEmpty && prefetches.isEmpty }
        var members: [Member] { loads.union(prefetches).sorted() }
    }

    /// The order in which places begin. The place with the smallest value begins first.
    private struct Rank: Comparable, Sendable {
        let urgency: Int
        let isNewestFirst: Bool
        let requestNumber: Member

        static func < (left: Self, right: Self) -> Bool {
            if left.urgency != right.urgency { return left.urgency > right.urgency }
            return left.isNewestFirst
                ? left.requestNumber > right.requestNumber : left.requestNumber < right.requestNumber
        }
    }

    /// The result of adding a load.
    struct AddResult: Sendable, Hashable {
        /// Whether the request is already running, so that the load begins immediately.
        var beginsNow = false
        /// The loads that are superseded.
        var superseded: [Member] = []
    }

    let configuration: LoaderConfiguration
    private(set) var statistics = LoaderStatistics()
    private var requests: [Member: QueuedRequest] = [:]
    private var ids: [LoadKey: Member] = [:]
    /// The request and priority of each load.
    private var owners: [Member: (request: Member, priority: RequestPriority)] = [:]
    /// Requests that are waiting and have loads that are not prefetches.
    private var waiting = IndexedHeap<Rank>()
    /// Waiting and running requests that have loads other than prefetches, ordered by their last request. Empty if
    /// `maxWaiting` is nil.
    private var (oldestWaiting, oldestRunning) = (IndexedHeap<Member>(), IndexedHeap<Member>())
    private var runningPrefetches = 0
    /// Waiting requests with only prefetches, in the order in which they were requested.
    private var waitingPrefetches = IndexedHeap<Member>()
    /// Requests that have ended since the last call of `takeEndedRequests()`.
    private var endedRequests: [Member] = []

    init(_ configuration: LoaderConfiguration) { self.configuration = configuration }

    var members: [Member] { Array(owners.keys) }

    private var prefetchLimit: Int {
        let share = configuration.prefetchShare
        return max(1, Int((share > 0 ? min(share, 1) : 0) * Double(max(1, configuration.maxConcurrentLoads))))
    }

    /// Adds a load.
    ///
    /// - Parameter member: a number larger than all earlier ones.
    mutating func add(
        _ member: Member, _ key: LoadKey, isPrefetch: Bool, priority: RequestPriority = .normal
    ) -> AddResult {
        let id = ids[key] ?? member
        ids[key] = id
        owners[member] = (id, priority)
        change(id, orAdd: QueuedRequest(id: id, key: key, first: member, last: member)) { request in
            if isPrefetch {
                request.prefetches.insert(member)
            } else {
                if request.isPrefetch { request.first = member }
                request.last = member
                request.loads.insert(member)
                request.urgencies[priority.rawValue] += 1
            }
        }
        return AddResult(beginsNow: requests[id]!.isRunning, superseded: isPrefetch ? [] : superseded(by: id))
    }

    /// Removes the loads that exceed `maxWaiting` and returns them: the oldest waiting loads first, then the oldest
    /// running loads.
    private mutating func superseded(by new: Member) -> [Member] {
        var ended: [Member] = []
        while let window = configuration.maxWaiting, waiting.count + oldestRunning.count > max(1, window) {
            let oldest = [oldestWaiting.first?.id, oldestRunning.first?.id].lazy.compactMap(\.self)
            guard let id = oldest.first(where: { $0 != new }) else { break }
            ended += requests[id]!.loads.sorted()
            statistics.superseded += 1
            for member in requests[id]!.loads { owners[member] = nil }
            change(id) { request in
                request.loads = []
                request.urgencies = [0, 0, 0]
            }
        }
        return ended
    }

    /// Changes the priority of a load that has not ended. Raising the priority of a prefetch turns it into a load.
    mutating func setPriority(_ member: Member, _ priority: RequestPriority) {
        guard let (id, old) = owners[member] else { return }
        owners[member]!.priority = priority
        change(id) { request in
            if request.loads.contains(member) {
                request.urgencies[old.rawValue] -= 1
            } else if priority > .low {
                if request.isPrefetch { request.first = member }
                request.last = max(request.last, member)
                request.prefetches.remove(member)
                request.loads.insert(member)
            } else {
                return
            }
            request.urgencies[priority.rawValue] += 1
        }
    }

    /// Removes a load that has ended.
    ///
    /// - Returns: the place of the load and whether other loads share it, or nil if the load had no place.
    @discardableResult
    mutating func end(_ member: Member) -> (request: Member, isShared: Bool)? {
        guard let (id, priority) = owners.removeValue(forKey: member) else { return nil }
        change(id) { request in
            if request.loads.remove(member) != nil { request.urgencies[priority.rawValue] -= 1 }
            request.prefetches.remove(member)
        }
        return (id, requests[id] != nil)
    }

    /// Removes and returns the requests that have ended since the last call.
    mutating func takeEndedRequests() -> [Member] {
        defer { endedRequests = [] }
        return endedRequests
    }

    /// Removes all loads.
    mutating func removeAll() {
        var empty = LoaderQueue(configuration)
        empty.statistics.isSuspended = statistics.isSuspended
        empty.statistics.ended = statistics.ended + requests.count
        empty.statistics.superseded = statistics.superseded
        empty.endedRequests = endedRequests + requests.keys
        self = empty
    }

    mutating func suspend(_ isSuspended: Bool) { statistics.isSuspended = isSuspended }

    /// Marks the next place in the queue as running and returns its loads. Returns nil if no load may begin.
    mutating func next() -> [Member]? {
        guard !statistics.isSuspended, statistics.running < max(1, configuration.maxConcurrentLoads),
            let id = waiting.first?.id ?? (runningPrefetches < prefetchLimit ? waitingPrefetches.first?.id : nil)
        else { return nil }
        change(id) { $0.isRunning = true }
        return requests[id]!.members
    }

    private mutating func change(_ id: Member, orAdd new: QueuedRequest? = nil, _ change: (inout QueuedRequest) -> Void)
    {
        if let request = requests[id] { count(request, -1) }
        // Removed from the dictionary, so that its sets are not copied.
        guard var request = requests.removeValue(forKey: id) ?? new else { return }
        change(&request)
        if request.isEmpty {
            ids[request.key] = nil
            endedRequests.append(id)
            statistics.ended += 1
        } else {
            requests[id] = request
            count(request, 1)
        }
        let waits = !request.isEmpty && !request.isRunning
        waiting[id] = waits && !request.isPrefetch ? rank(request) : nil
        waitingPrefetches[id] = waits && request.isPrefetch ? id : nil
        guard configuration.maxWaiting != nil else { return }
        oldestWaiting[id] = waits && !request.isPrefetch ? request.last : nil
        oldestRunning[id] = request.isRunning && !request.isPrefetch ? request.last : nil
    }

    private func rank(_ request: QueuedRequest) -> Rank {
        let isNewestFirst = configuration.newestFirst
        return Rank(
            urgency: request.urgencies.lastIndex { $0 > 0 } ?? 0, isNewestFirst: isNewestFirst,
            requestNumber: isNewestFirst ? request.last : request.first)
    }

    /// - Parameter by: 1 for a request's new state, −1 for its old state.
    private mutating func count(_ request: QueuedRequest, _ by: Int) {
        if request.isRunning { statistics.running += by } else { statistics.waiting += by }
        guard request.isPrefetch else { return }
        statistics.prefetches += by
        if request.isRunning { runningPrefetches += by }
    }
}
