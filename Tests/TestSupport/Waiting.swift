/// Lets other tasks run as long as `condition` is true.
///
/// On a stalled machine, an event may be late, so the time limit is generous. Without a limit, a test that waits
/// forever would block all others. Use this function only for lasting changes. A transient state may be over before the
/// next check.
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
        // Tasks with a lower priority do not run while a task that yields can be scheduled.
        if turns < 1_000 { await Task.yield() } else { try? await Task.sleep(for: .milliseconds(1)) }
    }
}

/// Repeats a check until it returns true. A check that throws is repeated, too. The limits are the same as for
/// `waitWhile`.
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

/// The error for a condition that did not change in time.
public struct WaitedInVain: Error, CustomStringConvertible {
    /// The location of the call.
    public let description: String
}
