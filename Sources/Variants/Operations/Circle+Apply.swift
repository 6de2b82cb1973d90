extension Circle {
    init() {}

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        try picture.masked(context) { RoundedRectangle(ellipse: $0.width, height: $0.height) }
    }
}
