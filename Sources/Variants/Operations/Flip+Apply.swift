extension Flip {
    init(horizontally: Bool, vertically: Bool) {
        self.horizontally = horizontally
        self.vertically = vertically
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        var result = vertically ? try picture.inMemory(context) : try picture.settled(context)
        if vertically {
            result.image = try VipsCall("flip", ["in": .image(result.image), "direction": "vertical"]).image()
        }
        if horizontally {
            result.image = try VipsCall("flip", ["in": .image(result.image), "direction": "horizontal"]).image()
        }
        return result
    }
}
