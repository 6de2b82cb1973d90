import Synchronization

/// Stops one render from outside: its caller left, or its time is over.
final class RenderControl: Sendable {
    private struct State {
        var stop: RenderError.Code?
        /// Images that pixels are pulled from at the moment.
        var sources: [Image] = []
    }
    private let state = Mutex(State())
    private let seconds: Double

    /// `seconds` is only what the message of a passed deadline says.
    init(seconds: Double) { self.seconds = seconds }

    /// Kills `image` when the render is stopped: at once when it has been already.
    func watch(_ image: Image) {
        let stopped = state.withLock { state in
            state.sources.append(image)
            return state.stop != nil
        }
        if stopped { image.kill() }
    }

    /// Forgets the images, so that none outlives the bytes it reads from.
    func finish() { state.withLock { $0.sources.removeAll() } }

    /// Stops the render with `cancelled` or `deadline`; the first reason stays.
    func stop(_ reason: RenderError.Code) {
        state.withLock { state in
            guard state.stop == nil else { return }
            state.stop = reason
            // Inside the lock: after `finish` nobody may touch an image any more.
            for image in state.sources { image.kill() }
        }
    }

    var isStopped: Bool { state.withLock { $0.stop != nil } }

    /// The error of a stopped render, nil while it may go on.
    var stopError: RenderError? {
        switch state.withLock({ $0.stop }) {
        case nil: nil
        case .deadline: RenderError(.deadline, "the render took longer than limits.seconds, \(seconds) s")
        case .some(let code): RenderError(code, "the render was cancelled")
        }
    }

    func check() throws(RenderError) {
        if let error = stopError { throw error }
    }
}
