public import HTTPCaching
import PipelineSupport
public import Variants

/// What is known about an original: format, size, camera, digest, freshness and colours.
public struct SourceInformation: Sendable {
    /// Colours and placeholders, of a small thumbnail.
    public struct Colours: Sendable {
        /// The mean in linear light, weighted by alpha, as `rrggbb`; nil if every pixel is fully transparent.
        public var average: String?
        /// At most six of the most frequent colours as `rrggbb`, the first one first.
        public var palette: [String]
        /// https://blurha.sh
        public var blurHash: String
        /// https://evanw.github.io/thumbhash, in base64.
        public var thumbHash: String
    }

    /// The original itself.
    public var response: ImageResponse
    /// Format, size, alpha, pages and orientation.
    public var header: ImageHeader
    /// Colour space, profile, and what the camera noted.
    public var details: ImageDetails
    /// nil if the pixels could not be decoded; `colourError` says why.
    public var colours: Colours?
    public var colourError: PipelineError?
    /// Whether pixels are missing, if the configuration accepts that.
    public var isDamaged = false
    /// Seconds that an original from the network stays fresh; nil for a file.
    public var freshness: Int?
    /// `ETag` and `Last-Modified` of the origin; none of a file.
    public var validators: [HeaderField]

    /// The JSON object that `pipectl info --json` prints and `/info` answers with.
    ///
    /// - Parameters:
    ///   - source: as the client named it.
    ///   - position: whether to say where the picture was taken.
    ///   - freshness: whether to say how long the original stays fresh: an answer with header fields says it there.
    package func json(source: String, position: Bool = false, freshness: Bool = true) -> String {
        var object = JSONText()
        object.add("source", SourceURL.redacting(source))
        object.add("format", header.format.rawValue)
        object.add("mediaType", response.mediaType)
        object.add("bytes", response.bytes.count)
        object.add("width", header.width)
        object.add("height", header.height)
        if isDamaged { object.add("damaged", true) }
        object.add("pages", header.pages)
        object.add("shownPage", header.shownPage)
        object.add("alpha", header.hasAlpha)
        object.add("orientation", header.orientation)
        object.add("uprightWidth", header.uprightWidth)
        object.add("uprightHeight", header.uprightHeight)
        object.add("colourSpace", details.colourSpace?.rawValue)
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
                guard position, let place = exif.position else { return }
                inner.add("position") { inner in
                    inner.add("latitude", place.latitude)
                    inner.add("longitude", place.longitude)
                }
            }
        }
        object.add("digest", response.digest)
        if freshness, let seconds = self.freshness { object.add("freshness", raw: JSONText.number(Double(seconds))) }
        object.add("validators") { inner in
            for field in validators { inner.add(field.name.lowercased(), field.value) }
        }
        object.add("averageColour", colours?.average)
        if let colours {
            object.add("palette", texts: colours.palette)
        }
        object.add("blurhash", colours?.blurHash)
        object.add("thumbhash", colours?.thumbHash)
        return object.closed
    }
}

extension ImagePipeline {
    /// What is known about an original; colours come from a thumbnail that is cached like any variant.
    ///
    /// - Parameter request: without a recipe.
    /// - Throws: as `respond(to:)`; `notAnImage` if the original is not an image.
    public func information(for request: ImageRequest) async throws(PipelineError) -> SourceInformation {
        let response = try await respond(to: request)
        guard let header = response.record.header else {
            throw PipelineError(
                .notAnImage, "\(request.source.displayName): not an image in a format this pipeline reads")
        }
        var information = SourceInformation(
            response: response, header: header, details: ImageDetails.read(response.bytes, header), validators: [])
        if case .url = request.source {
            information.validators = response.record.response.fields.filter {
                ["etag", "last-modified"].contains($0.name.lowercased())
            }
            information.freshness = Int(
                Freshness.remaining(of: response.record.response, now: now().rounded(.down), configuration: caching))
        }
        var small = request
        // Nothing is asked of the origin twice.
        small.policy = .cacheElseLoad
        do throws(PipelineError) {
            do { small.recipe = try Recipe("thumbnail:32x32,png") } catch {
                throw PipelineError(.invalidRecipe, error.description)
            }
            let picture = try await pixels(for: small)
            if limits.damaged == .accept { information.isDamaged = try await respond(to: small).isDamaged }
            information.colours = SourceInformation.Colours(
                average: BlurHash.averageColour(of: picture), palette: Palette.colours(of: picture),
                blurHash: BlurHash.hash(of: picture), thumbHash: Base64.text(ThumbHash.hash(of: picture)))
        } catch {
            if error.isCancellation { throw error }
            information.colourError = error
        }
        return information
    }
}

extension EXIFSummary {
    /// `1/250 s, f/2.8, ISO 100, 50 mm`, without the unknown parts; nil if all are unknown.
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

    /// One decimal below 100, unless that decimal is 0.
    private static func short(_ value: Double) -> String {
        let value = min(value, 1e9)
        let tenths = Int((value * 10).rounded())
        if tenths >= 1000 { return String(Int(value.rounded())) }
        return tenths % 10 == 0 ? String(tenths / 10) : "\(tenths / 10).\(tenths % 10)"
    }
}
