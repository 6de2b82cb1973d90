import HTTPCaching
import PipelineCaching
import PipelineSupport
import Variants

/// What makes two requests the same to a loader: all that decides which bytes they are answered with.
struct LoadKey: Sendable, Hashable {
    private let source: ImageSource
    private let sourceID: String?
    private let recipe: String?
    private let negotiated: [ImageFormat]
    private let policy: CachePolicy?
    private let storage: StorageOptions.RawValue
    private let fields: [String]

    init(_ request: ImageRequest) {
        // Comparing would go through all bytes each time.
        source =
            if case .bytes(let bytes, _) = request.source { .bytes([], name: sha256Hex(bytes)) } else { request.source }
        sourceID = request.sourceID
        recipe = request.recipe?.description
        negotiated = request.negotiated
        policy = request.policy
        storage = request.storage.rawValue
        fields = request.fields.map { "\($0.name.lowercased()): \($0.value)" }
    }
}

/// Which loads of a loader begin, and which end for newer ones. A value: it begins and ends nothing itself.
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
        /// When it was asked for first and last, by the numbers of loads.
        var (first, last): (Member, Member)
        var isRunning = false

        /// Whether it is only prefetched.
        var isPrefetch: Bool { loads.isEmpty }
        var members: [Member] { loads.union(prefetches).sorted() }
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
    /// The places of members.
    private var owners: [Member: Member] = [:]
    /// Places that wait and are not only prefetched, and such that run.
    private var (waiting, running): (Set<Member>, Set<Member>) = ([], [])
    private var runningPrefetches = 0
    /// Prefetched places in the order in which they will be wanted; some have begun or ended since.
    private var (soon, soonStart): ([Member], Int) = ([], 0)

    init(_ configuration: LoaderConfiguration) { self.configuration = configuration }

    var members: [Member] { Array(owners.keys) }

    private var prefetchLimit: Int {
        let share = configuration.prefetchShare
        return max(1, Int((share > 0 ? min(share, 1) : 0) * Double(max(1, configuration.loads))))
    }

    /// - Parameter member: larger than any before.
    mutating func add(_ member: Member, _ key: LoadKey, isPrefetch: Bool) -> Added {
        let id = ids[key] ?? member
        if id == member {
            ids[key] = id
            places[id] = Place(id: id, key: key, first: member, last: member)
            if !isPrefetch { places[id]!.loads = [member] } else { places[id]!.prefetches = [member] }
            count(places[id]!, 1)
        } else {
            change(id) { place in
                if isPrefetch {
                    place.prefetches.insert(member)
                } else {
                    if place.isPrefetch { place.first = member }
                    place.last = member
                    place.loads.insert(member)
                }
            }
        }
        owners[member] = id
        return Added(beginsNow: places[id]!.isRunning, superseded: isPrefetch ? [] : superseded(by: id))
    }

    /// Ends what a new load leaves no room for in the window: the oldest that wait, then the oldest that run.
    private mutating func superseded(by new: Member) -> [Member] {
        var ended: [Member] = []
        while let window = configuration.window, waiting.count + running.count > max(1, window) {
            guard let id = oldest(of: waiting, but: new) ?? oldest(of: running, but: new) else { break }
            ended += places[id]!.loads.sorted()
            statistics.superseded += 1
            for member in places[id]!.loads { owners[member] = nil }
            change(id) { $0.loads = [] }
        }
        return ended
    }

    private func oldest(of ids: Set<Member>, but new: Member) -> Member? {
        ids.filter { $0 != new }.min { places[$0]!.last < places[$1]!.last }
    }

    /// A load has ended.
    ///
    /// - Returns: its place, and whether others have that too; nil if it had none.
    @discardableResult
    mutating func end(_ member: Member) -> (place: Member, isShared: Bool)? {
        guard let id = owners.removeValue(forKey: member) else { return nil }
        change(id) { place in
            place.loads.remove(member)
            place.prefetches.remove(member)
        }
        return (id, holds(id))
    }

    func holds(_ place: Member) -> Bool { places[place] != nil }

    /// All loads have ended.
    mutating func removeAll() {
        var empty = LoaderQueue(configuration)
        empty.statistics.isSuspended = statistics.isSuspended
        empty.statistics.ended = statistics.ended + places.count
        empty.statistics.superseded = statistics.superseded
        self = empty
    }

    mutating func suspend(_ isSuspended: Bool) { statistics.isSuspended = isSuspended }

    /// The loads of the place that begins next, which runs from now on; nil if none may begin.
    ///
    /// - Parameter priority: how urgent a load is now.
    mutating func next(priority: (Member) -> RequestPriority) -> [Member]? {
        guard !statistics.isSuspended, statistics.running < max(1, configuration.loads) else { return nil }
        var best: (place: Place, priority: RequestPriority)?
        for id in waiting {
            let place = places[id]!
            let urgency = place.loads.lazy.map(priority).max() ?? .low
            if let known = best, !isBefore(place, urgency, known.place, known.priority) { continue }
            best = (place, urgency)
        }
        guard let id = best?.place.id ?? nextPrefetch() else { return nil }
        change(id) { $0.isRunning = true }
        return places[id]!.members
    }

    private mutating func nextPrefetch() -> Member? {
        guard runningPrefetches < prefetchLimit else { return nil }
        defer { if soonStart == soon.count { (soon, soonStart) = ([], 0) } }
        while soonStart < soon.count {
            let id = soon[soonStart]
            soonStart += 1
            if let place = places[id], place.isPrefetch, !place.isRunning { return id }
        }
        return nil
    }

    private func isBefore(
        _ left: Place, _ urgency: RequestPriority, _ right: Place, _ other: RequestPriority
    ) -> Bool {
        if urgency != other { return urgency > other }
        return configuration.order == .newestFirst ? left.last > right.last : left.first < right.first
    }

    private mutating func change(_ id: Member, _ change: (inout Place) -> Void) {
        count(places[id]!, -1)
        change(&places[id]!)
        if places[id]!.loads.isEmpty, places[id]!.prefetches.isEmpty {
            ids[places.removeValue(forKey: id)!.key] = nil
            statistics.ended += 1
        } else {
            count(places[id]!, 1)
        }
    }

    /// - Parameter by: 1 for a place as it is from now on, −1 for what it was.
    private mutating func count(_ place: Place, _ by: Int) {
        if place.isRunning { statistics.running += by } else { statistics.waiting += by }
        if place.isPrefetch {
            statistics.prefetches += by
            if place.isRunning { runningPrefetches += by } else if by > 0 { soon.append(place.id) }
        } else if place.isRunning {
            if by > 0 { running.insert(place.id) } else { running.remove(place.id) }
        } else {
            if by > 0 { waiting.insert(place.id) } else { waiting.remove(place.id) }
        }
    }
}
