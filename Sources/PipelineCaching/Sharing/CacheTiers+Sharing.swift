package import PipelineSupport

/// Work shared with other processes on the folder.
extension CacheTiers {
    /// A value that other processes may want too: found stored by one of them, or made here while they wait.
    ///
    /// - Parameters:
    ///   - look: finds a value stored meanwhile by another process or task; called once it is this task's turn.
    ///   - check: returns a closure that asks the store whether others will find the value; nil if they cannot. It
    ///     waits on the writer's thread behind what the work has queued, perhaps for long, and must not hold bodies.
    package func once<Value: Sendable, Failure: CancellableError>(
        _ kind: FlightLocks.Kind, _ key: String, look: () async -> Value?,
        check: (Value) -> (@Sendable (any Store) throws(StoreError) -> Bool)?,
        work: () async throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let hold: FlightLocks.Hold?
        do throws(CancellationError) {
            hold = try await locks?.hold(kind, key)
        } catch {
            throw .cancelled
        }
        // The previous lock holder may have stored the result.
        if let value = await look() {
            if let hold {
                locks?.note { $0.shared += 1 }
                locks?.release(hold, isShared: nil)
            }
            return value
        }
        guard let disk, let locks, let hold else { return try await work() }
        do throws(Failure) {
            let value = try await work()
            guard let isShared = check(value) else {
                locks.release(hold, isShared: false)
                return value
            }
            // Released after the writes that the work has queued, so that the next process finds the result.
            writer.afterwards { [self] in
                let isThere = attempt { () throws(StoreError) in try isShared(disk) }
                locks.release(hold, isShared: isThere ?? false)
            }
            return value
        } catch {
            // On cancellation the next waiter takes over. On failure the key is marked, so waiters do not retry one
            // after another.
            locks.release(hold, isShared: error.isCancellation ? nil : false)
            throw error
        }
    }
}
