extension Extend: ResizingOperation {
    func resultSize(of size: PixelSize) -> PixelSize? { canvas(of: size) }

    private func canvas(of size: PixelSize) -> PixelSize {
        PixelSize(width: size.width + margins[1] + margins[3], height: size.height + margins[0] + margins[2])
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = canvas(of: picture.size)
        try context.checkEdge(canvas)
        let settled = try picture.settled(context)
        if canvas == settled.size { return settled }
        return try settled.placed(on: canvas, x: margins[3], y: margins[0], colour: settled.uncovered)
    }
}
