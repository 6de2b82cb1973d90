/// A picture on its way through a recipe.
///
/// It starts as decoded: possibly shrunk, not yet oriented, in its own colour space. The first step that needs more
/// settles it to sRGB, 8 bits, 3 or 4 bands, oriented, `size` pixels; from then on it stays so.
package struct Picture: Sendable {
    var image: Image
    /// The size that geometry is computed with: the oriented size at full resolution.
    var size: PixelSize
    /// EXIF orientation that is still to be applied.
    var orientation = 1
    /// Whether colours are still those of the original.
    var isRaw = true
    /// Whether a colour profile stays as it is.
    var keepsProfile = false
    /// The ICC profile that describes the pixels, if they are not plain sRGB or the conversion attached one.
    var profile: [UInt8]?
    /// The colour of the last `background` step.
    var background: Colour?
    /// How far the picture reaches if its decoder has shrunk it, up to the first step.
    var extent: Reduction.Extent?
    /// The shared decode that provides the picture already shrunk for the first step, if there is one.
    var shared: SharedReduction?

    /// The picture in sRGB (or its kept profile), oriented, at its full size.
    func settled(_ context: RenderContext) throws(RenderError) -> Picture {
        var result = self
        if isRaw { try result.convert() }
        if orientation != 1 { try result.orient(context) }
        return result
    }

    /// The picture with its pixels in memory, for operations that read them in any order or more than once.
    ///
    /// `tile`: see `Image.computed`.
    func inMemory(_ context: RenderContext, tile: PixelSize? = nil) throws(RenderError) -> Picture {
        // `size` is not updated: `orient` calls this with pixels that are yet to be turned.
        var result = try settled(context)
        result.image = try result.image.inMemory(context.control, tile: tile)
        return result
    }

    /// The picture with its pixels changed in place by `change`.
    func changed(
        _ context: RenderContext, addingAlpha: Bool = false,
        _ change: (EditablePixels) throws(RenderError) -> Void
    ) throws(RenderError) -> Picture {
        let settled = try settled(context)
        let image = addingAlpha ? try settled.image.withAlpha() : settled.image
        let storage = try image.computed(context.control)
        try change(EditablePixels(bytes: storage.mutableBytes, size: settled.size, bands: image.bands))
        return try settled.replacing(
            Image(storage, width: image.width, height: image.height, bands: image.bands).labelled("srgb"))
    }

    /// The picture with the pixels and the size of `image`.
    func replacing(_ image: Image) -> Picture {
        var result = self
        result.image = image
        result.size = PixelSize(width: image.width, height: image.height)
        return result
    }

    /// Converts to sRGB, or to RGB of its own profile if that is kept.
    mutating func convert() throws(RenderError) {
        (image, profile) = try ColourConversion.sRGB(image, keepsProfile: keepsProfile)
        isRaw = false
    }

    /// Applies EXIF orientation (the tag's eight values: Exif 2.32, 4.6.4 A). Needs pixels in memory, since rotation
    /// reads them in columns.
    private mutating func orient(_ context: RenderContext) throws(RenderError) {
        let pending = orientation
        orientation = 1
        self = try inMemory(context)
        let angle: String? = [3: "d180", 4: "d180", 5: "d90", 6: "d90", 7: "d270", 8: "d270"][pending]
        if let angle { image = try image.turned(angle) }
        if [2, 4, 5, 7].contains(pending) { image = try image.flipped("horizontal") }
    }

    /// The picture scaled to exactly `target`, without a light in the one that `context` names.
    func resized(
        to target: PixelSize, light: RenderLight?, _ context: RenderContext
    ) throws(RenderError) -> Picture {
        // Edges that are cropped later may exceed the output's limit, but `limits.pixels` always applies.
        if target.width * target.height > context.limits.pixels {
            throw .overLimit(
                "resizing to \(target.width) × \(target.height) is", "pixels", context.limits.pixels,
                remedy: "ask for a smaller size")
        }
        if target == size { return try settled(context) }
        var result = self
        let stored = orientation >= 5 ? target.swapped : target
        if image.width == stored.width, image.height == stored.height {  // Drawn at this size.
            result.size = target
            return try result.settled(context)
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
        return try result.settled(context)
    }
}

/// Pixels to be changed in place: 8 bits, 3 bands or 4 with alpha (not premultiplied), rows without padding.
struct EditablePixels {
    let bytes: UnsafeMutableBufferPointer<UInt8>
    let size: PixelSize
    let bands: Int
}

extension Image {
    /// The image with its pixels computed into memory; for `tile`, see `computed`.
    func inMemory(_ control: RenderControl, tile: PixelSize? = nil) throws(RenderError) -> Image {
        let storage = try computed(control, tile: tile)
        return try Image(storage, width: width, height: height, bands: bands, format: format).labelled("srgb")
    }

    /// The same pixels under another interpretation.
    func labelled(_ interpretation: String) throws(RenderError) -> Image {
        try VipsCall("copy", ["in": .image(self), "interpretation": .string(interpretation)]).image()
    }
}
