import PipelineSupport
import ArgumentParser
import Glibc
import Pipeline
import PipelineSupport
import Variants

struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show an original's format, size, camera, digest, freshness and colours.",
        discussion: "Examples:\n  pipectl info photo.jpg\n  pipectl info https://example.org/photo.jpg --json")

    @Argument(help: ArgumentHelp("An http(s) URL or a file.", valueName: "source"))
    var source: String
    @Flag(help: "One JSON object.")
    var json = false
    @Flag(help: "Show where the picture was taken, if its EXIF data says so.")
    var position = false
    @OptionGroup var common: CommonOptions

    func validate() throws { try CommonOptions.checkSource(source) }

    func run() async throws {
        let configuration = try common.configuration()
        try await common.withPipeline(configuration) { pipeline in
            do throws(PipelineError) {
                let response = try await pipeline.answer(ImageRequest(ImageSource(source)))
                show(response, await colours(pipeline), configuration.pipeline.caching)
            } catch {
                throw error.hinting(at: source)
            }
        }
    }

    /// Colours and placeholder hashes computed from a small thumbnail.
    private struct Colours {
        var average: String?
        var palette: [String]
        var blurHash: String
        var thumbHash: String
    }

    /// The colours; nil if the pixels cannot be decoded, in which case the other facts are still printed.
    private func colours(_ pipeline: ImagePipeline) async -> Colours? {
        do {
            var request = ImageRequest(ImageSource(source), recipe: try Recipe("thumbnail:32x32,png"))
            request.policy = .cacheElseLoad
            let picture = try await pipeline.pixels(for: request)
            return Colours(
                average: BlurHash.averageColour(of: picture), palette: Palette.colours(of: picture),
                blurHash: BlurHash.hash(of: picture), thumbHash: Base64.text(ThumbHash.hash(of: picture)))
        } catch {
            Console.error("pipectl: no colours: \(error)")
            return nil
        }
    }

    private func show(_ response: ImageResponse, _ colours: Colours?, _ caching: CachingConfiguration) {
        guard let header = response.record.header else { return }
        let details = ImageDetails.read(response.bytes, header)
        print(
            json
                ? object(response, header, details, colours, caching)
                : text(response, header, details, colours, caching), terminator: "")
    }

    private func object(
        _ response: ImageResponse, _ header: ImageHeader, _ details: ImageDetails, _ colours: Colours?,
        _ caching: CachingConfiguration
    ) -> String {
        var object = JSONText()
        object.add("source", source)
        object.add("format", header.format.rawValue)
        object.add("mediaType", response.mediaType)
        object.add("bytes", response.bytes.count)
        object.add("width", header.width)
        object.add("height", header.height)
        object.add("pages", header.pages)
        object.add("alpha", header.hasAlpha)
        object.add("orientation", header.orientation)
        object.add("uprightWidth", header.uprightWidth)
        object.add("uprightHeight", header.uprightHeight)
        object.add("colourSpace", details.colourSpace?.rawValue)
        object.add("bitDepth", details.bitDepth)
        object.add("profile", header.profileBytes > 0)
        object.add("profileName", details.profileName)
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
        if let remaining = remaining(response, caching) {
            object.add("freshness", raw: JSONText.number(Double(remaining)))
        }
        object.add("validators") { inner in
            for field in validators(response) { inner.add(field.name.lowercased(), field.value) }
        }
        object.add("averageColour", colours?.average)
        if let colours { object.add("palette", raw: SettingValue.list(colours.palette.map { .string($0) }).json) }
        object.add("blurhash", colours?.blurHash)
        object.add("thumbhash", colours?.thumbHash)
        return object.closed + "\n"
    }

    private func text(
        _ response: ImageResponse, _ header: ImageHeader, _ details: ImageDetails, _ colours: Colours?,
        _ caching: CachingConfiguration
    ) -> String {
        var table = TextTable([("", .left), ("", .left)])
        table.add("format", "\(header.format.rawValue) (\(response.mediaType))")
        table.add("size", "\(header.width) × \(header.height), \(Readable.bytes(response.bytes.count))")
        if header.orientation > 1 {
            table.add("upright", "\(header.uprightWidth) × \(header.uprightHeight) (orientation \(header.orientation))")
        }
        if header.pages > 1 { table.add("pages", "\(header.pages)") }
        let colour = [
            details.colourSpace?.rawValue, details.bitDepth.map { "\($0) bits" }, header.hasAlpha ? "with alpha" : nil,
        ].compactMap { $0 }
        if !colour.isEmpty { table.add("colour", colour.joined(separator: ", ")) }
        let size = header.profileBytes > 0 ? Readable.bytes(header.profileBytes) : nil
        table.add(
            "profile",
            [details.profileName, size].compactMap { $0 }.joined(separator: ", ").nonEmpty
                ?? (details.colourSpace == .cmyk
                    ? "none (a default CMYK profile is assumed)" : "none (sRGB is assumed)"))
        if let exif = details.exif {
            let place = position ? exif.position.map { "\($0.latitude), \($0.longitude)" } : nil
            let rows = [
                ("camera", exif.camera), ("lens", exif.lens), ("exposure", exif.exposure), ("taken", exif.date),
                ("position", place),
            ]
            for (name, value) in rows { if let value { table.add(name, value) } }
        }
        table.add("digest", response.digest)
        if let remaining = remaining(response, caching) {
            table.add(
                "freshness", remaining > 0 ? "fresh for \(remaining) s" : "stale, contacts the origin on each use")
            for field in validators(response) { table.add(field.name.lowercased(), field.value) }
        }
        if let colours {
            table.add("average colour", colours.average.map { "#" + $0 } ?? "none")
            if !colours.palette.isEmpty {
                table.add("palette", colours.palette.map { "#" + $0 }.joined(separator: " "))
            }
            table.add("blurhash", colours.blurHash)
            table.add("thumbhash", colours.thumbHash)
        }
        return table.text
    }

    /// Seconds that an original from the network stays fresh; nil for a file.
    private func remaining(_ response: ImageResponse, _ caching: CachingConfiguration) -> Int? {
        guard case .url = ImageSource(source) else { return nil }
        let now = SystemClock.unix.seconds.rounded(.down)
        return Int(Freshness.remaining(of: response.record.response, now: now, configuration: caching))
    }

    private func validators(_ response: ImageResponse) -> [HeaderField] {
        response.record.response.fields.filter { ["etag", "last-modified"].contains($0.name.lowercased()) }
    }
}

extension EXIFSummary {
    /// `1/250 s, f/2.8, ISO 100, 50 mm`, without the unknown parts; nil if all are unknown.
    var exposure: String? {
        var parts: [String] = []
        if let time = exposureTime, time > 0 {
            // Cameras show exposure times up to half a second as fractions.
            parts.append(time <= 0.5 ? "1/\(Readable.short(1 / time)) s" : "\(Readable.short(time)) s")
        }
        if let aperture, aperture > 0 { parts.append("f/\(Readable.short(aperture))") }
        if let sensitivity, sensitivity > 0 { parts.append("ISO \(sensitivity)") }
        if let focalLength, focalLength > 0 { parts.append("\(Readable.short(focalLength)) mm") }
        return parts.joined(separator: ", ").nonEmpty
    }
}

extension String {
    var nonEmpty: String? { isEmpty ? nil : self }
}
