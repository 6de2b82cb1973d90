/// What a step may use besides the picture: how to resize, the limits, the named masks, and whether to go on.
public struct RenderContext: Sendable {
    let quality: RenderQuality
    let limits: RenderLimits
    let masks: [String: [UInt8]]
    let control: RenderControl

    /// Refuses a result with an edge beyond `limits.outputEdge`.
    func checkEdge(_ size: PixelSize) throws(RenderError) {
        let edge = max(size.width, size.height)
        guard edge <= limits.outputEdge else {
            throw RenderError(
                .overLimit,
                "an edge of \(edge) px (\(size.width) × \(size.height)) is over the limit outputEdge of \(limits.outputEdge)"
            )
        }
    }
}
