import PipelineCaching
import PipelineFleet
import PipelineSupport
import Synchronization

/// Tells the other machines of a fleet of purges here, and carries out theirs.
///
/// What is stored answers only while it is known that no other machine had purged anything `FleetConfiguration.seconds` ago
/// that was not carried out here; else it is validated first. While the server cannot be reached nothing is known, and what
/// is stored answers.
final class PurgeFeed: PurgeNews {
    private struct State {
        var status = FleetStatus()
        /// Purges that this machine has yet to publish.
        var waiting: [Purge] = []
        var isTelling = false
        var wasAway = false
    }

    private let configuration: FleetConfiguration
    private let stream = PurgeStream()
    private let redis: RedisConnection.Configuration
    /// For telling; the one that follows waits most of the time.
    private let connection: RedisConnection
    /// nil without a folder: what memory holds was stored since the start.
    private let file: PurgePlaceFile?
    private let node: String
    private let warn: @Sendable (String) -> Void
    private let state = Mutex(State())
    /// Until when what is stored may answer, in nanoseconds of the clock that counts suspension too; `max` while nothing
    /// can be known.
    private let until = Atomic<UInt64>(0)

    /// Purges that wait for the server; more of them become one of which nothing is known.
    private static let mostWaiting = 10_000
    /// Whether requests have waited in vain for purges to be carried out, so that others do not.
    private let isLate = Atomic<Bool>(false)
    /// Seconds that a request waits for purges to be carried out.
    private static let patience = 1.0
    private static let pollSeconds = 0.005
    /// Before carrying out is tried again after the folder failed.
    private static let pauseSeconds = 1.0

    /// - Parameters:
    ///   - folder: where the place in the stream is kept; nil for none.
    ///   - authoritiesFile: of `rediss://` servers; nil for the system's.
    init(
        _ configuration: FleetConfiguration, folder: String?, authoritiesFile: String?,
        warn: @escaping @Sendable (String) -> Void
    ) {
        self.configuration = configuration
        var redis = RedisConnection.Configuration(configuration.redis)
        redis.authoritiesFile = authoritiesFile
        self.redis = redis
        connection = RedisConnection(redis)
        file = folder.map { PurgePlaceFile(folder: $0) }
        node = String(UInt64.random(in: .min ... .max), radix: 16)
        self.warn = warn
    }

    var status: FleetStatus {
        state.withLock { state in
            var status = state.status
            status.waiting = state.waiting.count
            return status
        }
    }

    // MARK: Telling

    /// Tells the others of a purge.
    ///
    /// - Returns: whether they were told; otherwise they will be once the server can be reached.
    func tell(_ purge: Purge) async -> Bool {
        // A server that does not even refuse would be waited for.
        let isAway = until.load(ordering: .acquiring) == .max
        if !isAway, await publish(purge) { return true }
        wait(purge)
        return false
    }

    /// Tells the others behind the answer.
    func tellLater(_ purge: Purge) {
        wait(purge)
        Task { await tellWaiting() }
    }

    private func wait(_ purge: Purge) {
        state.withLock { state in
            state.waiting.append(purge)
            if state.waiting.count > Self.mostWaiting { state.waiting = [.unknown] }
        }
    }

    /// - Parameter isFirst: whether to log a failure; false for a repeated attempt.
    private func publish(_ purge: Purge, isFirst: Bool = true) async -> Bool {
        do throws(RedisError) {
            for part in purge.parts { _ = try await stream.publish(part, from: node, on: connection) }
            state.withLock { $0.status.told += 1 }
            return true
        } catch {
            // The others are told again: a purge that is carried out twice does no harm.
            if isFirst, error.code != .cancelled { warn("the fleet is not told of a purge yet: \(error)") }
            return false
        }
    }

    /// Tells of what waits, unless that is going on.
    private func tellWaiting() async {
        let begins = state.withLock { state in
            if state.isTelling || state.waiting.isEmpty { return false }
            state.isTelling = true
            return true
        }
        guard begins else { return }
        while let next = state.withLock({ $0.waiting.first }) {
            guard await publish(next, isFirst: false) else { break }
            state.withLock { if $0.waiting.first == next { $0.waiting.removeFirst() } }
        }
        state.withLock { $0.isTelling = false }
    }

    // MARK: Hearing

    var isCurrent: Bool { SystemClock.bootNanoseconds < until.load(ordering: .acquiring) }

    func catchUp() async -> Bool {
        let end = SystemClock.boot.seconds + Self.patience
        while !isCurrent {
            if Task.isCancelled || isLate.load(ordering: .relaxed) { return false }
            if SystemClock.boot.seconds > end {
                isLate.store(true, ordering: .relaxed)
                warn("purges by other machines are not carried out yet; until they are, what is stored is validated")
                return false
            }
            try? await Task.sleep(for: .seconds(Self.pollSeconds))
        }
        return true
    }

    /// Follows the purges until the task is cancelled.
    func follow(_ purger: Purger) async {
        var reader = PurgeReader(stream, redis)
        // Four reads within the time for which what they told is relied on.
        reader.blockSeconds = configuration.seconds / 4
        let start = Mutex(await file?.read() ?? .new)
        while !Task.isCancelled {
            do {
                try await reader.run(from: start.withLock(\.self)) { [self] events in
                    try await apply(events, purger)
                } advance: { [self] place in
                    start.withLock { $0 = .place(place) }
                    await store(place)
                } confirm: { [self] since, place in
                    until.store(Self.nanoseconds(since + configuration.seconds), ordering: .releasing)
                    isLate.store(false, ordering: .relaxed)
                    state.withLock { $0.status.number = place.number }
                    await tellWaiting()
                }
            } catch {
                warn("purges by other machines cannot be carried out, and are tried again: \(error)")
                try? await Task.sleep(for: .seconds(Self.pauseSeconds))
            }
        }
    }

    private func store(_ place: PurgePlace) async {
        do throws(PurgePlaceFile.Failure) { try await file?.write(place) } catch { warn("\(error)") }
    }

    private func apply(_ events: [PurgeEvent], _ purger: Purger) async throws(StoreError) {
        var joined: Purge?
        func carryOut() async throws(StoreError) {
            guard let purge = joined else { return }
            joined = nil
            // What these cover is looked for first, which takes time: requests wait, until the reader confirms.
            if !purge.tags.isEmpty || !purge.masks.isEmpty || !purge.overlays.isEmpty {
                until.store(0, ordering: .releasing)
            }
            _ = try await purger.carryOut(purge, isOwn: false)
        }
        for event in events {
            switch event {
            case .purge(_, _, node): continue
            case .purge(let number, let payload, _):
                state.withLock { $0.status.heard += 1 }
                let purge = Purge(payload)
                if purge == nil { lost("purge \(number) was written by another version") }
                if joined?.merge(purge ?? .unknown) == true { continue }
                try await carryOut()
                joined = purge ?? .unknown
            case .lost(let loss):
                try await carryOut()
                lost("\(loss)")
                try await purger.tiers.doubtAll()
            case .connected:
                // Those missed while it was away come first.
                until.store(0, ordering: .releasing)
                let wasAway = state.withLock { state in
                    state.status.isConnected = true
                    defer { state.wasAway = false }
                    return state.wasAway
                }
                if wasAway { warn("purges by other machines are carried out again: \(configuration.redis) answers") }
            case .disconnected(let error):
                state.withLock { ($0.status.isConnected, $0.wasAway) = (false, true) }
                until.store(.max, ordering: .releasing)
                isLate.store(false, ordering: .relaxed)
                warn("purges by other machines are not known, and what is stored answers: \(error)")
            }
        }
        try await carryOut()
    }

    private func lost(_ reason: String) {
        state.withLock { $0.status.losses += 1 }
        warn("purges may have been missed, so that everything stored is validated once: \(reason)")
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 { UInt64(max(0, seconds) * 1e9) }

    /// Tries once more to tell of what waits, and ends the connection.
    func close() async {
        while state.withLock({ $0.isTelling }) { try? await Task.sleep(for: .seconds(Self.pollSeconds)) }
        await tellWaiting()
        let left = status.waiting
        if left > 0 {
            warn("the fleet was not told of \(left) purges, since its server cannot be reached: purge again")
        }
        connection.close()
    }
}

/// The task that follows the purges of a fleet. It is cancelled when its pipeline is released.
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
