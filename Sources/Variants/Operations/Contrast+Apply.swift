extension Contrast {
    /// CSS `contrast()` (Filter Effects 1, §12): multiplies the difference of each value from 127.5 by the factor.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.recoloured(
            context, [[factor, 0, 0], [0, factor, 0], [0, 0, factor]], offset: 127.5 * (1 - factor))
    }
}
