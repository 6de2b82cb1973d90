import PipelineCaching
import PipelineFleet
import PipelineSupport
import Synchronization

/// Publishes the purges of this machine to the other machines of a fleet, and applies the purges of the other machines.
///
/// After each read of the stream, stored entries are served without validation for `FleetConfiguration.trustPeriod`.
/// After that time, and while the server cannot be reached, this machine cannot know about purges by other machines, so
/// it validates entries first.
final class PurgeFeed: PurgeUpdates {
    private struct State {
        var status = FleetStatus()
        var isAway = false
        /// Whether this machine also applies its own entries in the stream, because its folder refused a purge.
        var repeatsOwn = false
    }

    private let configuration: FleetConfiguration
    private let stream = PurgeStream()
    private let redis: RedisConnection.Configuration
    /// The connection for publishing. The connection that follows the stream blocks most of the time.
    private let connection: RedisConnection
    private let node: String
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())
    /// Purges that this machine has not published yet. Their folder also keeps the position in the stream. A pipeline
    /// without a folder needs no position, because its memory holds only entries stored since startup.
    let waiting: WaitingPurges
    /// The time until which stored entries may be served without validation, in nanoseconds of the clock that includes
    /// suspension.
    private let until = Atomic<UInt64>(0)
    /// Whether a request has already timed out waiting for purges to be applied, so that further requests do not wait.
    private let isLate = Atomic<Bool>(false)
    /// How long a request waits for purges to be applied, in seconds.
    private static let catchUpTimeout = 1.0
    private static let pollSeconds = 0.005
    /// The pause before a purge is retried after the folder failed, in seconds.
    private static let pauseSeconds = 0.25
    /// The name in the folder for the position in the stream.
    private static let positionName = "fleet.place"

    /// - Parameter authoritiesFile: the certificate authorities for `rediss://` servers, or nil to trust the
    ///   authorities of the system.
    init(
        _ configuration: FleetConfiguration, authoritiesFile: String?, warn: @escaping @Sendable (String) -> Void
    ) {
        self.configuration = configuration
        var redis = RedisConnection.Configuration(configuration.redis)
        redis.authoritiesFile = authoritiesFile
        self.redis = redis
        connection = RedisConnection(redis)
        waiting = WaitingPurges("fleet.waiting.", warn: warn)
        node = String(UInt64.random(in: .min ... .max), radix: 16)
        self.warn = warn
    }

    private var trustSeconds: Double { configuration.trustPeriod / .seconds(1) }
    private var folder: DiskTier? { waiting.folder.withLock(\.self) }

    var status: FleetStatus {
        var status = state.withLock(\.status)
        status.waiting = waiting.count
        return status
    }

    // MARK: Publishing

    /// Publishes a purge to the other machines.
    ///
    /// - Returns: whether the purge was published. If not, it will be published when the server can be reached.
    func publish(_ purge: Purge) async -> Bool {
        // If the server is unreachable, publishing would wait for a timeout.
        if !state.withLock(\.isAway), await publishNow(purge) { return true }
        await waiting.add(purge)()
        return false
    }

    /// Publishes a purge in a separate task, so that the caller need not wait.
    func publishLater(_ purge: Purge) {
        let store = waiting.add(purge)
        Task {
            await store()
            await publishWaiting()
        }
    }

    /// Records that the folder has refused a purge of this machine. The machine then applies the purge when it reads
    /// the purge from the stream.
    func repeatOwn() { state.withLock { $0.repeatsOwn = true } }

    /// - Parameter isFirst: whether this is the first attempt. Only the failure of a first attempt is logged.
    private func publishNow(_ purge: Purge, isFirst: Bool = true) async -> Bool {
        do throws(RedisError) {
            for part in purge.parts { _ = try await stream.publish(part, from: node, on: connection) }
            state.withLock { $0.status.published += 1 }
            return true
        } catch {
            // The purge is published again later. Applying it twice is harmless.
            if isFirst, error.code != .cancelled {
                warn("a purge has not been published to the fleet and will be retried: \(error)")
            }
            return false
        }
    }

    private func publishWaiting() async { await waiting.send { await publishNow($0, isFirst: false) } }

    // MARK: Following

    var isCurrent: Bool { SystemClock.bootNanoseconds < until.load(ordering: .acquiring) }

    func catchUp() async -> Bool {
        let end = SystemClock.boot.seconds + Self.catchUpTimeout
        while !isCurrent {
            if Task.isCancelled || isLate.load(ordering: .relaxed) { return false }
            if SystemClock.boot.seconds > end {
                isLate.store(true, ordering: .relaxed)
                warn(
                    "purges from other machines are still being applied; until then, stored pictures are validated before they are served"
                )
                return false
            }
            try? await Task.sleep(for: .seconds(Self.pollSeconds))
        }
        return true
    }

    /// Follows the stream of purges until the task is cancelled.
    func follow(_ purger: Purger) async {
        var reader = PurgeReader(stream, redis)
        // Read four times per trust period.
        reader.blockSeconds = trustSeconds / 4
        // Returns only when the task is cancelled.
        try? await reader.run(from: await Self.start(in: folder, waiting)) { [self] events in
            try await apply(events, purger)
        } advance: { [self] position in
            await store(position)
        } confirm: { [self] since, position in
            until.store(Self.nanoseconds(since + trustSeconds), ordering: .releasing)
            isLate.store(false, ordering: .relaxed)
            state.withLock { $0.status.number = position.number }
            await publishWaiting()
        }
    }

    /// Reads the position in the stream from a folder.
    ///
    /// - Parameter waiting: receives the purges that an earlier process did not publish.
    static func start(in folder: DiskTier?, _ waiting: WaitingPurges? = nil) async -> PurgeStart {
        guard let folder else { return .new }
        guard let (texts, holdsRecords) = try? await folder.texts() else { return .damagedPosition }
        waiting?.load(texts)
        if let text = texts[positionName] { return PurgePosition(text).map { .position($0) } ?? .damagedPosition }
        let former = await PurgePositionFile(folder: folder.store.folder).read()
        return former == .new && holdsRecords ? .damagedPosition : former
    }

    /// Stores the position in the same index that the preceding purges have changed, so that the position is never
    /// ahead of them.
    private func store(_ position: PurgePosition) async {
        guard let folder else { return }
        do throws(StoreError) {
            try await folder.store(texts: [Self.positionName: position.description])
            await PurgePositionFile(folder: folder.store.folder).remove()
        } catch {
            warn(
                "the position in the stream of purges cannot be stored, so some purges will be applied again after a restart: \(error)"
            )
        }
    }

    private func apply(_ events: [PurgeEvent], _ purger: Purger) async throws(StoreError) {
        var joined: Purge?
        func carryOut() async throws(StoreError) {
            guard let purge = joined else { return }
            joined = nil
            // Searching for the entries that these purges cover takes time. Requests wait until the reader confirms.
            if !purge.tags.isEmpty || !purge.masks.isEmpty || !purge.overlays.isEmpty {
                until.store(0, ordering: .releasing)
            }
            try await untilTheFolderWorks { () async throws(StoreError) in
                _ = try await purger.carryOut(purge, isOwn: false)
            }
        }
        for event in events {
            switch event {
            case .purge(_, _, node) where !state.withLock(\.repeatsOwn): continue
            case .purge(let number, let payload, _):
                state.withLock { $0.status.applied += 1 }
                let purge = Purge(payload)
                if purge == nil { lost("purge \(number) was written by a different version of the program") }
                if joined?.merge(purge ?? .unknown) == true { continue }
                try await carryOut()
                joined = purge ?? .unknown
            case .lost(let loss):
                try await carryOut()
                lost("\(loss)")
                try await untilTheFolderWorks { () async throws(StoreError) in
                    try await purger.tiers.markAllForValidation()
                }
            case .connected:
                // Purges that were missed while disconnected are applied first.
                until.store(0, ordering: .releasing)
                isLate.store(false, ordering: .relaxed)
                let wasAway = state.withLock { state in
                    state.status.isConnected = true
                    defer { state.isAway = false }
                    return state.isAway
                }
                if wasAway {
                    warn("\(configuration.redis) is responding again; purges from other machines are applied")
                }
            case .disconnected(let error):
                state.withLock { ($0.status.isConnected, $0.isAway) = (false, true) }
                until.store(0, ordering: .releasing)
                // Waiting would not help, because reconnecting is retried only after a pause.
                isLate.store(true, ordering: .relaxed)
                warn(
                    "purges from other machines cannot be received, so stored pictures are validated before they are served: \(error)"
                )
            }
        }
        try await carryOut()
    }

    /// Repeats a call until the folder works or the task is cancelled. Until then, all stored entries are validated
    /// before they are served.
    private func untilTheFolderWorks(_ body: () async throws(StoreError) -> Void) async throws(StoreError) {
        var hasWarned = false
        while true {
            do throws(StoreError) { return try await body() } catch {
                until.store(0, ordering: .releasing)
                isLate.store(true, ordering: .relaxed)
                if Task.isCancelled { throw error }
                if !hasWarned {
                    warn(
                        "purges from other machines cannot be applied to the cache folder and will be retried: \(error)"
                    )
                }
                hasWarned = true
                // Cancellation ends the sleep early. The loop checks for cancellation after the next attempt.
                try? await Task.sleep(for: .seconds(Self.pauseSeconds))
            }
        }
    }

    private func lost(_ reason: String) {
        state.withLock { $0.status.losses += 1 }
        warn("purges may have been missed, so each stored entry is validated once: \(reason)")
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(max(0, seconds) * 1e9) }

    /// Tries again to publish the waiting purges, then closes the connection.
    func close() async {
        while waiting.isSending { try? await Task.sleep(for: .seconds(Self.pollSeconds)) }
        await publishWaiting()
        let left = status.waiting
        if left > 0 {
            let advice = folder == nil ? "repeat them" : "the next process that uses this cache folder publishes them"
            warn("\(left) purges were not published to the fleet, because its Redis server is unreachable: \(advice)")
        }
        connection.close()
    }
}

/// Owns the task that follows the purges of a fleet. The task is cancelled when its pipeline is released.
final class FleetFollower: Sendable {
    let feed: PurgeFeed
    private let task: Task<Void, Never>

    init(_ feed: PurgeFeed, _ purger: Purger) {
        self.feed = feed
        task = Task(priority: .high) { await feed.follow(purger) }
    }

    deinit { task.cancel() }

    func close() async {
        task.cancel()
        await task.value
        await feed.close()
    }
}
