/// The intermediate picture between the steps of a recipe.
///
/// Initially, a picture is as the decoder returned it: possibly shrunk, not yet oriented, and in its own color space.
/// The first step that needs pixels settles the picture: it converts the picture to 8-bit sRGB with three or four
/// bands, orients it, and resizes it to `size`. The picture stays in this form for all further steps.
package struct Picture: Sendable {
    var image: Image
    /// The size for geometric computations: the oriented size at full resolution.
    var size: PixelSize
    /// The EXIF orientation that has not been applied yet.
    var orientation = 1
    /// Whether the colors are still the original's.
    var isRaw = true
    /// Whether a color profile is kept.
    var keepsProfile = false
    /// The ICC profile of the pixels if they are not plain sRGB or if the conversion attached a profile.
    var profile: [UInt8]?
    /// The color of the last `background` step.
    var background: Color?
    /// The area that the picture covers after its decoder has shrunk it. Used only until the first step.
    var extent: Reduction.Extent?
    /// The shared decode that provides the picture already shrunk for the first step, or nil if the render decodes
    /// separately.
    var shared: SharedReduction?

    /// Returns the picture in sRGB or its kept color space, oriented, and at full size.
    func normalized(_ context: RenderContext) throws(RenderError) -> Picture {
        var result = self
        if isRaw { try result.convert() }
        if orientation != 1 { try result.orient(context) }
        return result
    }

    /// Returns the picture with its pixels in memory, for operations that read the pixels in arbitrary order or more
    /// than once.
    ///
    /// - Parameter tile: see `Image.computed`.
    func inMemory(_ context: RenderContext, tile: PixelSize? = nil) throws(RenderError) -> Picture {
        // `size` is not updated, because `orient` calls this method with pixels that have not been rotated yet.
        var result = try normalized(context)
        result.image = try result.image.inMemory(context.control, tile: tile)
        return result
    }

    /// Returns the picture after `change` has modified its pixels in place.
    func changed(
        _ context: RenderContext, addingAlpha: Bool = false,
        _ change: (EditablePixels) throws(RenderError) -> Void
    ) throws(RenderError) -> Picture {
        let normalized = try normalized(context)
        let image = addingAlpha ? try normalized.image.withAlpha() : normalized.image
        let storage = try image.computed(context.control)
        try change(EditablePixels(bytes: storage.mutableBytes, size: normalized.size, bands: image.bands))
        return try normalized.replacing(
            Image(storage, width: image.width, height: image.height, bands: image.bands).labeled("srgb"))
    }

    /// Returns the picture with the pixels and the size of `image`.
    func replacing(_ image: Image) -> Picture {
        var result = self
        result.image = image
        result.size = PixelSize(width: image.width, height: image.height)
        return result
    }

    /// Selects a part of a picture that its decoder has shrunk. The part is in pixels of the full resolution.
    mutating func select(_ window: PixelRectangle, shrink: Int) throws(RenderError) {
        func part(_ start: Int, _ length: Int, _ edge: Int) -> (start: Int, length: Int) {
            (start / shrink, min((length + shrink - 1) / shrink, edge - start / shrink))
        }
        let (across, down) = (part(window.x, window.width, image.width), part(window.y, window.height, image.height))
        image = try image.area(
            PixelRectangle(x: across.start, y: down.start, width: across.length, height: down.length))
        if extent != nil {
            // The last squares of the picture may be only partly covered.
            extent = Reduction.Extent(
                width: min(Double(across.length), Double(window.width) / Double(shrink)),
                height: min(Double(down.length), Double(window.height) / Double(shrink)))
        }
        size = PixelSize(width: window.width, height: window.height)
    }

    /// Converts to sRGB, or to RGB in the picture's own profile if the profile is kept.
    mutating func convert() throws(RenderError) {
        (image, profile) = try ColorConversion.sRGB(image, keepsProfile: keepsProfile)
        isRaw = false
    }

    /// Applies the EXIF orientation (the eight values of the tag: Exif 2.32, 4.6.4 A). Requires pixels in memory,
    /// because rotation reads them by column.
    private mutating func orient(_ context: RenderContext) throws(RenderError) {
        let pending = orientation
        orientation = 1
        self = try inMemory(context)
        let angle: String? = [3: "d180", 4: "d180", 5: "d90", 6: "d90", 7: "d270", 8: "d270"][pending]
        if let angle { image = try image.turned(angle) }
        if [2, 4, 5, 7].contains(pending) { image = try image.flipped("horizontal") }
    }

    /// Scales the picture to exactly `target`. If `light` is nil, uses the light of `context`.
    func resized(
        to target: PixelSize, light: RenderLight?, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        // Edges that are cropped later may exceed the limit of the output, but `limits.pixels` always applies.
        if target.width * target.height > context.limits.pixels {
            throw .overLimit(
                "the result would have \(target.width) × \(target.height) pixels", "pixels", context.limits.pixels,
                remedy: "use a smaller size")
        }
        if target == size { return try normalized(context) }
        var result = self
        let stored = orientation >= 5 ? target.swapped : target
        if image.width == stored.width, image.height == stored.height {  // It was drawn at this size.
            result.size = target
            return try result.normalized(context)
        }
        let light = light ?? context.light
        (result.shared, result.extent) = (nil, nil)
        if isRaw, !Reduction.accepts(image, stored), !Resize.accepts(image) { try result.convert() }
        if let shared, shared.target.size == stored {
            result.image = try shared.reduced(image, extent, context.control)
        } else {
            result.image =
                try Reduction.accepts(result.image, stored)
                ? Reduction.resize(
                    result.image, extent, to: stored, lights: light.linearShares(isDrawn: context.isDrawn),
                    context.control)
                : Resize.resize(result.image, to: stored, linear: light == .linear)
        }
        result.size = target
        return try result.normalized(context)
    }
}

/// Pixels for in-place changes, with 8 bits per sample, three bands or four with alpha (not premultiplied), and rows
/// without padding.
struct EditablePixels {
    let bytes: UnsafeMutableBufferPointer<UInt8>
    let size: PixelSize
    let bands: Int
}

extension Image {
    /// Returns the image with its pixels computed into memory. For `tile`, see `computed`.
    func inMemory(_ control: RenderControl, tile: PixelSize? = nil) throws(RenderError) -> Image {
        let storage = try computed(control, tile: tile)
        return try Image(storage, width: width, height: height, bands: bands, format: format).labeled("srgb")
    }

    /// Returns the pixels with a different interpretation. If it is nil, returns a copy with its own metadata.
    func labeled(_ interpretation: String?) throws(RenderError) -> Image {
        try VipsCall(
            nickname: "copy",
            arguments: [("in", .image(self))] + (interpretation.map { [("interpretation", .string($0))] } ?? [])
        ).image()
    }
}
