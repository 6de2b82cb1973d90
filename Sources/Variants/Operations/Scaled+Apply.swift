extension Scaled {
    init(factor: Double) { self.factor = factor }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let target = picture.size.scaled(by: factor)
        try context.checkEdge(target)
        return try picture.resized(to: target, quality: context.quality, context)
    }
}
