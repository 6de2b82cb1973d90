import HTTPCaching
import PipelineCaching
import Variants

/// What makes two requests the same to a loader: all that decides which bytes they are answered with.
struct LoadKey: Sendable, Hashable {
    private let source: ImageSource
    /// Address and length of bytes without an ID: to compare or digest them would take the caller's time. The loader holds
    /// the request for as long as the key is in use, so no other array has this address.
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

/// Which loads of a loader begin, and which end for newer ones. A value: it begins and ends nothing itself.
///
/// Each call takes at most a multiple of log n steps for each load that it returns.
struct LoaderQueue: Sendable {
    /// A load, by a number of its own.
    typealias Member = UInt64

    /// Loads of the same request.
    private struct Place {
        /// The number of the first of all its members.
        let id: Member
        let key: LoadKey
        var loads: Set<Member> = []
        var prefetches: Set<Member> = []
        /// How many of its loads have each priority, the least urgent first.
        var urgencies = [0, 0, 0]
        /// When it was asked for first and last, by the numbers of loads.
        var (first, last): (Member, Member)
        var isRunning = false

        /// Whether it is only prefetched.
        var isPrefetch: Bool { loads.isEmpty }
        var isEmpty: Bool { loads.isEmpty && prefetches.isEmpty }
        var members: [Member] { loads.union(prefetches).sorted() }
    }

    /// When a place begins; the least comes first.
    private struct Turn: Comparable, Sendable {
        let urgency: Int
        let isNewestFirst: Bool
        let asked: Member

        static func < (left: Self, right: Self) -> Bool {
            if left.urgency != right.urgency { return left.urgency > right.urgency }
            return left.isNewestFirst ? left.asked > right.asked : left.asked < right.asked
        }
    }

    /// What becomes of a load that is added.
    struct Added: Sendable, Hashable {
        /// Whether its place is running, so that it begins at once.
        var beginsNow = false
        /// The loads that end for it.
        var superseded: [Member] = []
    }

    let configuration: LoaderConfiguration
    private(set) var statistics = LoaderStatistics()
    private var places: [Member: Place] = [:]
    private var ids: [LoadKey: Member] = [:]
    /// The places of members, and how urgent these are.
    private var owners: [Member: (place: Member, priority: RequestPriority)] = [:]
    /// Places that wait and are not only prefetched.
    private var waiting = IndexedHeap<Turn>()
    /// These places, and running ones, by when they were last asked for. Empty without a window.
    private var (oldestWaiting, oldestRunning) = (IndexedHeap<Member>(), IndexedHeap<Member>())
    private var runningPrefetches = 0
    /// Places that wait and are only prefetched, in the order in which they will be wanted.
    private var soon = IndexedHeap<Member>()
    /// Places that have ended since they were last taken.
    private var gone: [Member] = []

    init(_ configuration: LoaderConfiguration) { self.configuration = configuration }

    var members: [Member] { Array(owners.keys) }

    private var prefetchLimit: Int {
        let share = configuration.prefetchShare
        return max(1, Int((share > 0 ? min(share, 1) : 0) * Double(max(1, configuration.loads))))
    }

    /// - Parameter member: larger than any before.
    mutating func add(
        _ member: Member, _ key: LoadKey, isPrefetch: Bool, priority: RequestPriority = .normal
    ) -> Added {
        let id = ids[key] ?? member
        ids[key] = id
        owners[member] = (id, priority)
        change(id, orAdd: Place(id: id, key: key, first: member, last: member)) { place in
            if isPrefetch {
                place.prefetches.insert(member)
            } else {
                if place.isPrefetch { place.first = member }
                place.last = member
                place.loads.insert(member)
                place.urgencies[priority.rawValue] += 1
            }
        }
        return Added(beginsNow: places[id]!.isRunning, superseded: isPrefetch ? [] : superseded(by: id))
    }

    /// Ends what a new load leaves no room for in the window: the oldest that wait, then the oldest that run.
    private mutating func superseded(by new: Member) -> [Member] {
        var ended: [Member] = []
        while let window = configuration.window, waiting.count + oldestRunning.count > max(1, window) {
            let oldest = [oldestWaiting.first?.id, oldestRunning.first?.id].lazy.compactMap(\.self)
            guard let id = oldest.first(where: { $0 != new }) else { break }
            ended += places[id]!.loads.sorted()
            statistics.superseded += 1
            for member in places[id]!.loads { owners[member] = nil }
            change(id) { place in
                place.loads = []
                place.urgencies = [0, 0, 0]
            }
        }
        return ended
    }

    /// Changes how urgent a load is, if it has not ended.
    mutating func setPriority(_ member: Member, _ priority: RequestPriority) {
        guard let (id, old) = owners[member] else { return }
        owners[member]!.priority = priority
        guard places[id]!.loads.contains(member) else { return }
        change(id) { place in
            place.urgencies[old.rawValue] -= 1
            place.urgencies[priority.rawValue] += 1
        }
    }

    /// A load has ended.
    ///
    /// - Returns: its place, and whether others have that too; nil if it had none.
    @discardableResult
    mutating func end(_ member: Member) -> (place: Member, isShared: Bool)? {
        guard let (id, priority) = owners.removeValue(forKey: member) else { return nil }
        change(id) { place in
            if place.loads.remove(member) != nil { place.urgencies[priority.rawValue] -= 1 }
            place.prefetches.remove(member)
        }
        return (id, places[id] != nil)
    }

    /// The places that have ended since the last call.
    mutating func takeGone() -> [Member] {
        defer { gone = [] }
        return gone
    }

    /// All loads have ended.
    mutating func removeAll() {
        var empty = LoaderQueue(configuration)
        empty.statistics.isSuspended = statistics.isSuspended
        empty.statistics.ended = statistics.ended + places.count
        empty.statistics.superseded = statistics.superseded
        empty.gone = gone + places.keys
        self = empty
    }

    mutating func suspend(_ isSuspended: Bool) { statistics.isSuspended = isSuspended }

    /// The loads of the place that begins next, which runs from now on; nil if none may begin.
    mutating func next() -> [Member]? {
        guard !statistics.isSuspended, statistics.running < max(1, configuration.loads),
            let id = waiting.first?.id ?? (runningPrefetches < prefetchLimit ? soon.first?.id : nil)
        else { return nil }
        change(id) { $0.isRunning = true }
        return places[id]!.members
    }

    private mutating func change(_ id: Member, orAdd new: Place? = nil, _ change: (inout Place) -> Void) {
        if let place = places[id] { count(place, -1) }
        // Taken out, so that its sets are not copied.
        guard var place = places.removeValue(forKey: id) ?? new else { return }
        change(&place)
        if place.isEmpty {
            ids[place.key] = nil
            gone.append(id)
            statistics.ended += 1
        } else {
            places[id] = place
            count(place, 1)
        }
        let waits = !place.isEmpty && !place.isRunning
        waiting[id] = waits && !place.isPrefetch ? turn(place) : nil
        soon[id] = waits && place.isPrefetch ? id : nil
        guard configuration.window != nil else { return }
        oldestWaiting[id] = waits && !place.isPrefetch ? place.last : nil
        oldestRunning[id] = place.isRunning && !place.isPrefetch ? place.last : nil
    }

    private func turn(_ place: Place) -> Turn {
        let isNewestFirst = configuration.order == .newestFirst
        return Turn(
            urgency: place.urgencies.lastIndex { $0 > 0 } ?? 0, isNewestFirst: isNewestFirst,
            asked: isNewestFirst ? place.last : place.first)
    }

    /// - Parameter by: 1 for a place as it is from now on, −1 for what it was.
    private mutating func count(_ place: Place, _ by: Int) {
        if place.isRunning { statistics.running += by } else { statistics.waiting += by }
        guard place.isPrefetch else { return }
        statistics.prefetches += by
        if place.isRunning { runningPrefetches += by }
    }
}
