extension Scaled {
    init(factor: Double) { self.factor = factor }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.resized(to: picture.size.scaled(by: factor), quality: context.quality, context)
    }
}
