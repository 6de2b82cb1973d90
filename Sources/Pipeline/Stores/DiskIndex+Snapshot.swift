import Glibc

/// When look-ups are made in one read transaction, a snapshot: where they follow each other closely, for a short while.
///
/// On its own each look-up takes locks and gives them up, and reads its pages anew after every commit of another process.
/// In a snapshot it does neither, and pages are kept from one snapshot to the next as far as they still hold (`KeptPages.h`).
/// Who looks something up now and then holds none: it takes a thread to end one, which costs more than it would save.
package struct Snapshot {
    package struct Settings: Sendable, Hashable {
        /// Nanoseconds for which a snapshot is held at most. The log cannot begin anew meanwhile: who writes may wait so long.
        package var lifetime: UInt64 = 2_000_000
        /// Look-ups within that time from which on one is held.
        package var least = 16
    }

    let settings: Settings
    /// The generation in it.
    var generation: UInt64 = 0
    /// Whether a thread waits for its time to be over.
    var isWatched = false
    /// When the snapshot expires, in nanoseconds of `now()`; 0 before the first look-up.
    private(set) var expiry: UInt64 = 0
    private var count = 0
    private var wasDense = false

    init(_ settings: Settings) { self.settings = settings }

    static func now() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    /// How often somebody looks whether it has been left.
    static let watchMicroseconds: UInt32 = 10_000

    func isOver(now: UInt64) -> Bool { now >= expiry }

    /// Counts a look-up.
    /// - Returns: whether the time of the snapshot before is over.
    mutating func count(now: UInt64) -> Bool {
        let isOver = isOver(now: now)
        if isOver {
            // Not after a pause.
            wasDense = count >= settings.least && now < expiry &+ settings.lifetime
            (expiry, count) = (now &+ settings.lifetime, 0)
        }
        count += 1
        return isOver
    }

    /// Begins to count anew after a look-up that found nothing: it was made twice, and has ended the snapshot.
    mutating func missed() { (count, wasDense) = (0, false) }

    /// Whether look-ups follow each other closely, as far as they have been counted.
    var isDense: Bool { wasDense || count >= settings.least }
}

extension DiskIndex {
    /// Has what is looked up next be read in a snapshot where that is worth it.
    ///
    /// - Returns: whether it is: what is not found in it may be there by now.
    func holdSnapshot() -> Bool {
        guard !isWriting, let connection = try? connection else { return false }
        if snapshot.count(now: Snapshot.now()) { endSnapshot() }
        guard snapshot.isDense else { return false }
        if connection.isReading {
            if shared.value == snapshot.generation { return true }
            // Something was purged since.
            endSnapshot()
        }
        do throws(StoreError) {
            try connection.beginReading()
            // As this snapshot has it: of a purge that has not committed others are told already.
            snapshot.generation = try generation()
            return true
        } catch {
            // Whatever it is, the look-up meets it too.
            endSnapshot()
            return false
        }
    }

    /// Has what is read next be what is there now.
    /// - Returns: whether there was a snapshot.
    @discardableResult
    func endSnapshot() -> Bool {
        guard let connection = try? connection, connection.isReading else { return false }
        connection.endReading()
        return true
    }

    /// Whether a snapshot is held that no thread watches; one does from now on.
    func takeWatch() -> Bool {
        guard !snapshot.isWatched, let connection = try? connection, connection.isReading else { return false }
        snapshot.isWatched = true
        return true
    }

    /// Ends the snapshot when its time is over.
    ///
    /// - Returns: whether one is held still; where none is, nobody watches from now on.
    func endSnapshotInTime() -> Bool {
        if snapshot.isOver(now: Snapshot.now()) { endSnapshot() }
        snapshot.isWatched = (try? connection)?.isReading ?? false
        return snapshot.isWatched
    }
}
