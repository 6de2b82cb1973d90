/// Lets others go on for as long as `condition` holds.
///
/// What a test waits for may come late on a machine that stands still, but not never: a test that waited without end would
/// take all others with it. Only for what stays once it has come: what comes and goes may have gone by the next look.
///
/// - Throws: `WaitedInVain` after five minutes, and when the task was cancelled.
public func waitWhile(
    _ condition: () throws -> Bool, file: StaticString = #fileID, line: UInt = #line
) async throws {
    let deadline = ContinuousClock.now + .seconds(300)
    while try condition() {
        guard ContinuousClock.now < deadline, !Task.isCancelled else {
            throw WaitedInVain(description: "\(file):\(line): what was waited for did not come")
        }
        await Task.yield()
    }
}

/// What a test waited for has not come.
public struct WaitedInVain: Error, CustomStringConvertible {
    /// Where it waited.
    public let description: String
}
