import Pipeline

/// The progress line of a command that waits for one load. The line appears on a terminal after one second.
enum WaitLine {
    /// Returns the line for a load that has taken `seconds` so far.
    static func text(_ status: LoadStatus, seconds: Double) -> String {
        let text =
            switch status.phase {
            case .waiting, .finished: "working"
            case .fetching where status.received == 0: "waiting for the origin"
            case .fetching:
                "fetched " + Readable.bytes(status.received)
                    + (status.expected.map { " of " + Readable.bytes($0) } ?? "")
            case .rendering: "rendering"
            }
        return text + " · " + Readable.duration(seconds: seconds)
    }

    /// Updates the line until the task is cancelled, then clears it.
    ///
    /// - Parameter descriptor: The terminal's file descriptor.
    static func show(_ load: LoadTask, on descriptor: Int32) async {
        let began = ContinuousClock.now
        var pause = Duration.seconds(1)
        var isShown = false
        // Sleeping fails only on cancellation, which ends the loop.
        while (try? await Task.sleep(for: pause)) != nil {
            pause = .milliseconds(200)
            isShown = true
            let text = text(load.status, seconds: (ContinuousClock.now - began) / .seconds(1))
            send(ProgressLine.clear + text.prefix(max(10, ProgressLine.columns(of: descriptor) - 1)), descriptor)
        }
        if isShown { send(ProgressLine.clear, descriptor) }
    }

    private static func send(_ text: String, _ descriptor: Int32) {
        // Ignore errors. If the terminal is closed, they cannot be reported.
        try? AtomicOutput.write(Array(text.utf8), toDescriptor: descriptor, named: "standard error")
    }
}
