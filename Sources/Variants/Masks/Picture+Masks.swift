extension Picture {
    /// Returns the picture with its alpha multiplied by a shape of the same size.
    func masked(
        _ context: RenderContext, _ shape: (PixelSize) -> RoundedRectangle
    ) throws(RenderError) -> Picture {
        try changed(context, addingAlpha: true) { pixels throws(RenderError) in
            try shape(pixels.size).multiply(into: pixels.bytes, context.control.check)
        }
    }
}
