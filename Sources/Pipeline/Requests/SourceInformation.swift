public import HTTPCaching
import PipelineSupport
public import Variants

/// Describes an original: format, size, camera, digest, freshness and colors. Use it to lay out a page and to show a
/// placeholder before the picture has been loaded.
///
/// ```swift
/// let pipeline = try ImagePipeline()
/// let request = ImageRequest(.url("https://example.org/photo.jpg"))
/// let information = try await pipeline.information(for: request)
/// print(information.header.width, "×", information.header.height, information.details.exif?.camera ?? "")
/// print(information.colors?.blurHash ?? "no placeholder")
/// ```
public struct SourceInformation: Sendable {
    /// The colors and placeholders of a picture, computed from a small thumbnail.
    public struct Colors: Sendable {
        /// The mean color in linear light, weighted by alpha, as `rrggbb`, or nil if every pixel is fully transparent.
        public var average: String?
        /// The most frequent colors as `rrggbb`, most frequent first. There are at most six.
        public var palette: [String]
        /// The BlurHash (https://blurha.sh).
        public var blurHash: String
        /// The ThumbHash in base64 (https://evanw.github.io/thumbhash).
        public var thumbHash: String
    }

    /// The response with the original.
    public var response: ImageResponse
    /// The format, size, alpha, pages and orientation.
    public var header: ImageHeader
    /// The color space, the profile, and the metadata from the camera.
    public var details: ImageDetails
    /// The colors, or nil if the pixels could not be decoded. In that case, `colorError` contains the reason.
    public var colors: Colors?
    /// The reason why `colors` is nil. If `colors` is not nil, this value is nil.
    public var colorError: PipelineError?
    /// Whether pixels are missing and the configuration accepts damaged pictures.
    public var isDamaged = false
    /// The remaining freshness of an original from the network in whole seconds, which is negative if the original is
    /// stale. The value is nil if the original is a file.
    public var freshness: Duration?
    /// The origin's `ETag` and `Last-Modified` fields. Empty if the original is a file.
    public var validators: [HeaderField]

    /// Returns the JSON object for `pipectl info --json` and `/info`.
    ///
    /// - Parameters:
    ///   - source: the source as the client specified it.
    ///   - position: whether to include where the picture was taken.
    ///   - freshness: whether to include the remaining freshness. An HTTP response states it in its header fields
    ///     instead.
    package func json(source: String, position: Bool = false, freshness: Bool = true) -> String {
        var object = JSONText()
        object.add("source", SourceURL.redacting(source))
        object.add("format", header.format.rawValue)
        object.add("mediaType", response.mediaType)
        object.add("bytes", response.bytes.count)
        object.add("width", header.encodedWidth)
        object.add("height", header.encodedHeight)
        if isDamaged { object.add("damaged", true) }
        object.add("pages", header.pages)
        object.add("shownPage", header.shownPage)
        object.add("alpha", header.hasAlpha)
        object.add("orientation", header.orientation)
        object.add("uprightWidth", header.width)
        object.add("uprightHeight", header.height)
        object.add("colourSpace", details.colorSpace)
        object.add("bitDepth", details.bitDepth)
        object.add("profile", header.profileBytes > 0)
        object.add("profileName", details.profileName)
        object.add("gainMap", details.hasGainMap)
        object.add("contentCredentials", details.hasContentCredentials)
        let unsupported = details.unsupportedFeatures
        if !unsupported.isEmpty { object.add("unsupportedFeatures", texts: unsupported) }
        if let exif = details.exif {
            object.add("exif") { inner in
                inner.add("camera", exif.camera)
                inner.add("lens", exif.lens)
                inner.add("exposure", exif.exposure)
                inner.add("date", exif.date)
                guard position, let latitude = exif.latitude, let longitude = exif.longitude else { return }
                inner.add("position") { inner in
                    inner.add("latitude", latitude)
                    inner.add("longitude", longitude)
                }
            }
        }
        object.add("digest", response.digest)
        if freshness, let left = self.freshness {
            object.add("freshness", raw: JSONText.number(Double(left.components.seconds)))
        }
        object.add("validators") { inner in
            for field in validators { inner.add(field.name.lowercased(), field.value) }
        }
        object.add("averageColour", colors?.average)
        if let colors {
            object.add("palette", texts: colors.palette)
        }
        object.add("blurhash", colors?.blurHash)
        object.add("thumbhash", colors?.thumbHash)
        return object.closed
    }
}

extension ImagePipeline {
    /// Returns facts about an original. The colors come from a thumbnail that is cached like any variant.
    ///
    /// - Parameter request: a request without a recipe.
    /// - Throws: the errors of `respond(to:)`, and `notAnImage` if the original is not an image.
    public func information(for request: ImageRequest) async throws(PipelineError) -> SourceInformation {
        let response = try await respond(to: request)
        guard let header = response.record.header else {
            throw PipelineError(
                .notAnImage, "\(request.source.displayName): not an image in a supported format")
        }
        var information = SourceInformation(
            response: response, header: header, details: ImageDetails.read(response.bytes, header), validators: [])
        if case .url = request.source {
            information.validators = response.record.response.fields.filter {
                ["etag", "last-modified"].contains($0.name.lowercased())
            }
            let left = Freshness.remaining(
                of: response.record.response, now: now().rounded(.down), configuration: caching)
            information.freshness = .seconds(Int(left))
        }
        var small = request
        // Do not contact the origin a second time.
        small.policy = .cacheElseLoad
        do throws(PipelineError) {
            do { small.recipe = try Recipe("thumbnail:32x32,png") } catch {
                throw PipelineError(.invalidRecipe, error.description)
            }
            let picture = try await pixels(for: small)
            if limits.acceptsDamaged { information.isDamaged = try await respond(to: small).isDamaged }
            information.colors = SourceInformation.Colors(
                average: BlurHash.averageColor(of: picture), palette: Palette.colors(of: picture),
                blurHash: BlurHash.hash(of: picture), thumbHash: Base64.text(ThumbHash.hash(of: picture)))
        } catch {
            if error.isCancellation { throw error }
            information.colorError = error
        }
        return information
    }
}

extension EXIFSummary {
    /// The exposure, such as `1/250 s, f/2.8, ISO 100, 50 mm`. Unknown parts are omitted. The value is nil if all parts
    /// are unknown.
    package var exposure: String? {
        var parts: [String] = []
        if let time = exposureTime, time > 0 {
            // Cameras show exposure times up to half a second as fractions.
            parts.append(time <= 0.5 ? "1/\(Self.short(1 / time)) s" : "\(Self.short(time)) s")
        }
        if let aperture, aperture > 0 { parts.append("f/\(Self.short(aperture))") }
        if let sensitivity, sensitivity > 0 { parts.append("ISO \(sensitivity)") }
        if let focalLength, focalLength > 0 { parts.append("\(Self.short(focalLength)) mm") }
        return parts.isEmpty ? nil : parts.joined(separator: ", ")
    }

    /// Formats a number with one decimal if it is below 100 and the decimal is not 0.
    private static func short(_ value: Double) -> String {
        let value = min(value, 1e9)
        let tenths = Int((value * 10).rounded())
        if tenths >= 1000 { return String(Int(value.rounded())) }
        return tenths % 10 == 0 ? String(tenths / 10) : "\(tenths / 10).\(tenths % 10)"
    }
}
