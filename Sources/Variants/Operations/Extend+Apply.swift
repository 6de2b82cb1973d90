extension Extend {
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = PixelSize(
            width: picture.size.width + margins[1] + margins[3], height: picture.size.height + margins[0] + margins[2])
        try context.checkEdge(canvas)
        let settled = try picture.settled(context)
        if canvas == settled.size { return settled }
        return try settled.placed(on: canvas, x: margins[3], y: margins[0], colour: settled.uncovered)
    }
}
