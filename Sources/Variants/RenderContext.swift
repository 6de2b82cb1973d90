import Synchronization

/// Everything that a step needs in addition to the picture: the default light for resizing, the limits, the named
/// masks, and the control that stops the render.
package struct RenderContext: Sendable {
    /// The light for resizing steps that do not name a light.
    let light: RenderLight
    /// Whether the original is probably a drawing, or nil if this cannot be determined from the file.
    let isDrawn: Bool?
    let limits: RenderLimits
    let masks: [String: [UInt8]]
    let control: RenderControl
    /// The windows that content-aware steps have chosen.
    let windows = FrameWindows()

    /// Throws `overLimit` if an edge of the result exceeds `limits.outputEdge`.
    func checkEdge(_ size: PixelSize) throws(RenderError) { try limits.checkEdge(size) }
}

/// Remembers the windows that content-aware steps (`trim`, `gravity=attention`) choose. Each window is chosen in the
/// first frame of an animation and reused for all other frames, so that every frame has the same size and the picture
/// does not jump.
final class FrameWindows: Sendable {
    private struct State {
        var chosen: [PixelRectangle] = []
        var next = 0
    }
    private let state = Mutex(State())

    /// Starts a new frame. Must be called before the steps are applied to the frame.
    func beginFrame() { state.withLock { $0.next = 0 } }

    /// Returns the window that was chosen in the first frame at this point of the recipe. For the first frame, calls
    /// `choose`.
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
