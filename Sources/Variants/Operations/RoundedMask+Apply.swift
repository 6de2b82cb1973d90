extension RoundedMask {
    init(radii: [EdgeLength]) { self.radii = radii }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.masked(context) { RoundedRectangle(width: $0.width, height: $0.height, radii: radii) }
    }
}
