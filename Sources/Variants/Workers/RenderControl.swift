import Synchronization

/// Stops a render from another thread, because its caller cancelled it or its deadline passed.
final class RenderControl: Sendable {
    private struct State {
        var stop: RenderError.Code?
        var phase = RenderPhase.pixels
        var stoppedIn = RenderPhase.pixels
        /// The images that pixels are currently being read from.
        var sources: [Image] = []
    }
    private let state = Mutex(State())
    private let limits: RenderLimits
    private let format: ImageFormat
    private let onEncode: @Sendable (RenderControl) throws(RenderError) -> Void

    /// - Parameters:
    ///   - limits: the limits that the error message of a passed deadline names.
    ///   - format: the output format in that message.
    ///   - onEncode: called when the render enters its second phase.
    init(
        _ limits: RenderLimits = RenderLimits(), _ format: ImageFormat = .jpeg,
        onEncode: @escaping @Sendable (RenderControl) throws(RenderError) -> Void = { _ in }
    ) {
        self.limits = limits
        self.format = format
        self.onEncode = onEncode
    }

    /// Marks the beginning of the second phase: the pixels are in memory, and encoding is next.
    func beginEncoding() throws(RenderError) {
        try check()
        state.withLock { $0.phase = .encode }
        try onEncode(self)
    }

    /// Registers `image` so that it is killed when the render is stopped. Kills the image immediately if the render has
    /// already been stopped.
    func watch(_ image: Image) {
        let stopped = state.withLock { state in
            state.sources.append(image)
            return state.stop != nil
        }
        if stopped { image.kill() }
    }

    /// Releases the images, so that no image outlives the bytes that it reads from.
    func finish() { state.withLock { $0.sources.removeAll() } }

    /// Stops the render with `cancelled` or `deadline`. Later reasons are ignored.
    func stop(_ reason: RenderError.Code) {
        state.withLock { state in
            guard state.stop == nil else { return }
            state.stop = reason
            state.stoppedIn = state.phase
            // Kill the images while holding the lock: after `finish`, images must not be accessed.
            for image in state.sources { image.kill() }
        }
    }

    var isStopped: Bool { state.withLock { $0.stop != nil } }

    var stopError: RenderError? {
        let (stop, phase) = state.withLock { ($0.stop, $0.stoppedIn) }
        return switch stop {
        case nil: nil
        case .deadline: .deadline(phase, limits, format)
        case .some(let code): RenderError(code, "the render was cancelled")
        }
    }

    func check() throws(RenderError) {
        if let error = stopError { throw error }
    }
}
