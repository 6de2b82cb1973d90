/// Lets other tasks run for as long as `condition` holds.
///
/// On a stalled machine an event may come late, so the limit is generous; without one, a test that waits forever would
/// block all others. Use it only for lasting changes: a transient state may be over before the next check.
///
/// - Throws: `WaitedInVain` after five minutes, or if the task was cancelled.
public func waitWhile(
    _ condition: () throws -> Bool, file: StaticString = #fileID, line: UInt = #line
) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    var turns = 0
    while try condition() {
        guard ContinuousClock.now < deadline, !Task.isCancelled else {
            throw WaitedInVain(description: "\(file):\(line): what was waited for did not come")
        }
        turns += 1
        // Tasks of lower priority get no turn for as long as one that yields is there to be run.
        if turns < 1_000 { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
}

/// Repeats a check until it holds; one that throws does not. Limits as of `waitWhile`.
public func eventually(
    file: StaticString = #fileID, line: UInt = #line, _ condition: () async throws -> Bool
) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while (try? await condition()) != true {
        guard ContinuousClock.now < deadline, !Task.isCancelled else {
            throw WaitedInVain(description: "\(file):\(line): what was waited for did not come")
        }
        try? await Task.sleep(for: .milliseconds(1))
    }
}

/// The error for a condition that did not end in time.
public struct WaitedInVain: Error, CustomStringConvertible {
    /// Where it waited.
    public let description: String
}
