import Variants

/// Work shared with other processes on the folder.
extension CacheTiers {
    /// What is wanted by everybody who misses it: found stored by another process, or made while others wait.
    ///
    /// - Parameters:
    ///   - look: finds it where it was stored meanwhile, by another process or another task; asked once this one has its turn.
    ///   - check: asks the store whether others will find what was made, on the writer's thread, behind what the work stored; nil
    ///     if they cannot. It may wait there long, and must not hold bodies.
    func once<Value: Sendable>(
        _ kind: FlightLocks.Kind, _ key: String, look: () async -> Value?,
        check: (Value) -> (@Sendable (any Store) throws(StoreError) -> Bool)?,
        work: () async throws(PipelineError) -> Value
    ) async throws(PipelineError) -> Value {
        let hold = try await locks?.hold(kind, key)
        // Who had its turn before has stored what it made.
        if let value = await look() {
            if let hold {
                locks?.note { $0.shared += 1 }
                locks?.release(hold, isShared: nil)
            }
            return value
        }
        guard let disk, let locks, let hold else { return try await work() }
        do throws(PipelineError) {
            let value = try await work()
            guard let isShared = check(value) else {
                locks.release(hold, isShared: false)
                return value
            }
            // Behind what the work has queued: once others may go on, it is there.
            writer.afterwards { [self] in
                let isThere = attempt { () throws(StoreError) in try isShared(disk) }
                locks.release(hold, isShared: isThere ?? false)
            }
            return value
        } catch {
            // Who was cancelled leaves it to the next; what failed is not tried by one after the other.
            locks.release(hold, isShared: error.code == .cancelled ? nil : false)
            throw error
        }
    }
}
