extension Crop: ResizingOperation {
    init(width: Int, height: Int, offset: (x: Int, y: Int)? = nil, anchor: Anchor = .gravity(.centre)) {
        self.width = width
        self.height = height
        self.offset = offset
        self.anchor = anchor
    }

    func resultSize(of size: PixelSize) throws(RenderError) -> PixelSize? {
        guard offset != nil else { return PixelSize(width: min(width, size.width), height: min(height, size.height)) }
        let part = try part(of: size)
        return PixelSize(width: part.width, height: part.height)
    }

    func apply(to picture: Picture, in context: RenderContext) throws(RenderError) -> Picture {
        let settled = try picture.settled(context)
        let size = settled.size
        guard offset != nil else {
            let target = PixelSize(width: min(width, size.width), height: min(height, size.height))
            return target == size ? settled : try settled.cropped(to: target, anchor: anchor, context)
        }
        return try settled.cropped(to: part(of: size))
    }

    /// The rectangle at the offset, clipped to the picture.
    private func part(of size: PixelSize) throws(RenderError) -> PixelRectangle {
        let offset = offset ?? (0, 0)
        let (left, top) = (max(0, offset.x), max(0, offset.y))
        let (right, bottom) = (min(size.width, offset.x + width), min(size.height, offset.y + height))
        guard left < right, top < bottom else {
            throw RenderError(
                .notApplicable,
                "crop \(width)x\(height)+\(offset.x)+\(offset.y) leaves nothing of \(size.width) × \(size.height) pixels"
            )
        }
        return PixelRectangle(x: left, y: top, width: right - left, height: bottom - top)
    }
}
