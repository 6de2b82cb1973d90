extension Border {
    /// The frame lies outside: each edge grows by twice its width, and nothing of the picture is covered.
    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let canvas = PixelSize(width: picture.size.width + 2 * width, height: picture.size.height + 2 * width)
        try context.checkEdge(canvas)
        return try picture.settled(context).placed(on: canvas, x: width, y: width, colour: colour)
    }
}
