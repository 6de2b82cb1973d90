extension Border: ResizingOperation {
    func resultSize(of size: PixelSize) -> PixelSize? { canvas(of: size) }

    private func canvas(of size: PixelSize) -> PixelSize {
        PixelSize(width: size.width + 2 * width, height: size.height + 2 * width)
    }

    /// Draws the frame outside the picture: each edge grows by twice the frame's width, and no pixel is covered.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = canvas(of: picture.size)
        try context.checkEdge(canvas)
        return try picture.settled(context).placed(on: canvas, x: width, y: width, colour: colour)
    }
}
