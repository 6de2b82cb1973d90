import HTTPCaching
import PipelineCaching
import Variants

/// What makes two requests the same to a loader: all that decides which bytes they are answered with.
struct LoadKey: Sendable, Hashable {
    private let source: ImageSource
    private let sourceID: String?
    private let recipe: String?
    private let negotiated: [ImageFormat]
    private let policy: CachePolicy
    private let storage: StorageOptions.RawValue
    private let fields: [String]

    init(_ request: ImageRequest) {
        source = request.source
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
        let key: LoadKey
        var members: [Member]
        /// When it was asked for: the number of the last member, prefetches aside.
        var order: Member
        /// Whether all of its members are prefetched.
        var isPrefetch: Bool
        var isRunning = false
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
    private var places: [LoadKey: Place] = [:]
    private var keys: [Member: LoadKey] = [:]

    init(_ configuration: LoaderConfiguration) { self.configuration = configuration }

    var members: [Member] { Array(keys.keys) }

    private var prefetchLimit: Int { max(1, Int(configuration.prefetchShare * Double(max(1, configuration.loads)))) }

    /// - Parameter member: larger than any before.
    mutating func add(_ member: Member, _ key: LoadKey, isPrefetch: Bool) -> Added {
        var added = Added()
        keys[member] = key
        let isNew = places[key].map(\.isPrefetch) ?? true
        var place = places[key] ?? Place(key: key, members: [], order: member, isPrefetch: isPrefetch)
        place.members.append(member)
        if !isPrefetch { (place.order, place.isPrefetch) = (member, false) }
        places[key] = place
        added.beginsNow = place.isRunning
        if !isPrefetch, isNew, let window = configuration.window {
            var real = places.values.filter { !$0.isPrefetch && $0.key != key }
            // Those that wait before those that run, the oldest of them first.
            real.sort { $0.isRunning != $1.isRunning ? !$0.isRunning : $0.order < $1.order }
            for place in real.prefix(max(0, real.count + 1 - max(1, window))) {
                added.superseded += place.members
                statistics.superseded += 1
                remove(place)
            }
        }
        count()
        return added
    }

    /// A load has ended.
    mutating func end(_ member: Member) {
        guard let key = keys.removeValue(forKey: member), var place = places[key] else { return }
        place.members.removeAll { $0 == member }
        if place.members.isEmpty { remove(place) } else { places[key] = place }
        count()
    }

    mutating func suspend(_ isSuspended: Bool) { statistics.isSuspended = isSuspended }

    /// The loads of the place that begins next, which runs from now on; nil if none may begin.
    ///
    /// - Parameter priority: how urgent a load is now.
    mutating func next(priority: (Member) -> RequestPriority) -> [Member]? {
        guard !statistics.isSuspended else { return nil }
        let running = places.values.filter(\.isRunning)
        guard running.count < max(1, configuration.loads) else { return nil }
        let mayPrefetch = running.count(where: \.isPrefetch) < prefetchLimit
        var best: (place: Place, priority: RequestPriority)?
        for place in places.values where !place.isRunning && (mayPrefetch || !place.isPrefetch) {
            let urgency = place.members.lazy.map(priority).max() ?? .low
            guard let known = best else {
                best = (place, urgency)
                continue
            }
            if isBefore(place, urgency, known.place, known.priority) { best = (place, urgency) }
        }
        guard let best else { return nil }
        places[best.place.key]?.isRunning = true
        count()
        return best.place.members
    }

    private func isBefore(
        _ left: Place, _ urgency: RequestPriority, _ right: Place, _ other: RequestPriority
    ) -> Bool {
        if left.isPrefetch != right.isPrefetch { return right.isPrefetch }
        if urgency != other { return urgency > other }
        // Prefetches are given in the order in which they will be wanted.
        let isNewestFirst = configuration.order == .newestFirst && !left.isPrefetch
        return isNewestFirst ? left.order > right.order : left.order < right.order
    }

    private mutating func remove(_ place: Place) {
        places[place.key] = nil
        for member in place.members { keys[member] = nil }
        statistics.ended += 1
    }

    private mutating func count() {
        statistics.running = places.values.count(where: \.isRunning)
        statistics.waiting = places.count - statistics.running
        statistics.prefetches = places.values.count(where: \.isPrefetch)
    }
}
