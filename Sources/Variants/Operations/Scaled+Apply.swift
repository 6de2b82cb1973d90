extension Scaled: ResizingOperation {
    init(factor: Double) { self.factor = factor }

    func resultSize(of size: PixelSize) -> PixelSize? { size.scaled(by: factor) }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let target = picture.size.scaled(by: factor)
        try context.checkEdge(target)
        return try picture.resized(to: target, quality: context.quality, context)
    }
}
