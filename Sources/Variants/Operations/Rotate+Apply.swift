extension Rotate {
    init(degrees: Double) { self.degrees = degrees }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let angles: [Double: String] = [90: "d90", 180: "d180", 270: "d270"]
        if degrees == 0 { return try picture.settled(context) }
        guard let angle = angles[degrees] else {
            throw RenderError(.notAvailable, "rotating by other angles than 90, 180 and 270 is not available yet")
        }
        let memory = try picture.inMemory(context)
        return memory.replacing(
            try VipsCall("rot", ["in": .image(memory.image), "angle": .string(angle)]).image())
    }
}
