import Pipeline
import Synchronization

/// The progress line of a command that waits for one answer; it appears on a terminal after one second.
final class WaitLine: Sendable {
    /// What the command is waiting for. It does no I/O: events and elapsed time come in, text goes out.
    struct Progress: Sendable {
        /// The text to show once the original has arrived; nil if the command only fetches.
        var afterwards: String?
        private var isAsking = false
        private var received = 0
        private var expected: Int?

        init(afterwards: String?) { self.afterwards = afterwards }

        mutating func take(_ event: LoadEvent) {
            switch event {
            case .requesting: isAsking = true
            case .progress(let received, let expected): (self.received, self.expected) = (received, expected)
            case .cached, .finished: break
            }
        }

        func text(seconds: Double) -> String {
            var text = "working"
            if isAsking, received == 0 {
                text = "waiting for the origin"
            } else if received > 0, received == expected, let afterwards {
                text = afterwards
            } else if received > 0 {
                text = "fetched " + Readable.bytes(received) + (expected.map { " of " + Readable.bytes($0) } ?? "")
            }
            return text + " · " + Readable.duration(seconds: seconds)
        }
    }

    private let progress: Mutex<Progress>

    init(afterwards: String?) { progress = Mutex(Progress(afterwards: afterwards)) }

    func take(_ event: LoadEvent) { progress.withLock { $0.take(event) } }

    /// Updates the line until the task is cancelled, then clears it.
    ///
    /// - Parameter descriptor: the terminal's descriptor.
    func show(on descriptor: Int32) async {
        let began = ContinuousClock.now
        var pause = Duration.seconds(1)
        var isShown = false
        // Sleeping fails only on cancellation, which ends the loop.
        while (try? await Task.sleep(for: pause)) != nil {
            pause = .milliseconds(200)
            isShown = true
            let text = progress.withLock { $0.text(seconds: (ContinuousClock.now - began) / .seconds(1)) }
            send(ProgressLine.clear + text.prefix(max(10, ProgressLine.columns(of: descriptor) - 1)), descriptor)
        }
        if isShown { send(ProgressLine.clear, descriptor) }
    }

    private func send(_ text: String, _ descriptor: Int32) {
        // Ignore errors: if the terminal is closed, there is nowhere to report them.
        try? AtomicOutput.write(Array(text.utf8), toDescriptor: descriptor, named: "standard error")
    }
}
