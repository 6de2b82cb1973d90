import Synchronization

/// What a step may use besides the picture: the light to resize in, the limits, the named masks, and the control that
/// stops it.
package struct RenderContext: Sendable {
    /// The light in which steps resize that name none.
    let light: RenderLight
    /// Whether the original is likely a drawing; nil if its file leaves that open.
    let isDrawn: Bool?
    let limits: RenderLimits
    let masks: [String: [UInt8]]
    let control: RenderControl
    /// The windows that steps chose by looking at the picture.
    let windows = FrameWindows()

    /// Refuses a result with an edge beyond `limits.outputEdge`.
    func checkEdge(_ size: PixelSize) throws(RenderError) { try limits.checkEdge(size) }
}

/// The parts of the picture that steps choose by looking at it (`trim`, `gravity=attention`). They are chosen in an
/// animation's first frame and used for all, so that frames keep one size and the picture does not jump.
final class FrameWindows: Sendable {
    private struct State {
        var chosen: [PixelRectangle] = []
        var next = 0
    }
    private let state = Mutex(State())

    /// Must be called before the steps are applied to a frame.
    func beginFrame() { state.withLock { $0.next = 0 } }

    /// The part that was chosen in the first frame at this point of the recipe, or else what `choose` finds.
    func window(_ choose: () throws(RenderError) -> PixelRectangle) throws(RenderError) -> PixelRectangle {
        let known = state.withLock { state -> PixelRectangle? in
            defer { state.next += 1 }
            return state.next < state.chosen.count ? state.chosen[state.next] : nil
        }
        if let known { return known }
        let window = try choose()
        state.withLock { $0.chosen.append(window) }
        return window
    }
}
