extension Crop {
    init(width: Int, height: Int, offset: (x: Int, y: Int)? = nil, anchor: Anchor = .gravity(.centre)) {
        self.width = width
        self.height = height
        self.offset = offset
        self.anchor = anchor
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let settled = try picture.settled(context)
        let size = settled.size
        guard let offset else {
            let target = PixelSize(width: min(width, size.width), height: min(height, size.height))
            return target == size ? settled : try settled.cropped(to: target, anchor: anchor, context)
        }
        // Clipped to the picture.
        let (left, top) = (max(0, offset.x), max(0, offset.y))
        let (right, bottom) = (min(size.width, offset.x + width), min(size.height, offset.y + height))
        guard left < right, top < bottom else {
            throw RenderError(
                .notApplicable,
                "crop \(width)x\(height)+\(offset.x)+\(offset.y) leaves nothing of \(size.width) × \(size.height) pixels"
            )
        }
        return try settled.cropped(
            to: PixelRectangle(x: left, y: top, width: right - left, height: bottom - top))
    }
}
