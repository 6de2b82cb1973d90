import ArgumentParser
import Glibc
import Pipeline
import PipelineSupport
import Variants

struct InfoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info",
        abstract: "Show an original's format, size, camera, digest, freshness and colors.",
        discussion: "Examples:\n  pipectl info photo.jpg\n  pipectl info https://example.org/photo.jpg --json")

    @OptionGroup var argument: SourceArgument
    @Flag(help: "Print one JSON object.")
    var json = false
    @Flag(help: "Show where the picture was taken, if its EXIF data says so.")
    var position = false
    @OptionGroup var common: CommonOptions

    private var source: String { argument.text }

    func run() async throws {
        let configuration = try common.configuration()
        let request = try NamedSource(source, common.collectedSettings()).request
        try await common.withPipeline(configuration) { pipeline in
            do throws(PipelineError) {
                let information = try await Interruption.cancelling { () async throws(PipelineError) in
                    try await pipeline.information(for: request)
                }
                if let error = information.colorError {
                    Console.error("pipectl: the colors could not be determined: \(error)")
                }
                print(
                    json ? information.json(source: source, position: position) + "\n" : text(information),
                    terminator: "")
            } catch {
                if Interruption.isRequested { throw CommandFailure(.interrupted, "interrupted") }
                throw error.hinting(at: source)
            }
        }
    }

    private func text(_ information: SourceInformation) -> String {
        let (response, header, details) = (information.response, information.header, information.details)
        var table = TextTable([("", .left), ("", .left)])
        table.add("format", "\(header.format.rawValue) (\(response.mediaType))")
        table.add("size", "\(header.encodedWidth) × \(header.encodedHeight), \(Readable.bytes(response.bytes.count))")
        if header.orientation > 1 {
            table.add("upright", "\(header.width) × \(header.height) (orientation \(header.orientation))")
        }
        if information.isDamaged { table.add("damaged", "yes, pixels are missing; variants are not stored") }
        if header.pages > 1 {
            table.add("pages", "\(header.pages)" + (header.shownPage.map { "; variants show \($0)" } ?? ""))
        }
        let color = [
            details.colorSpace, details.bitDepth.map { "\($0) bits" }, header.hasAlpha ? "with alpha" : nil,
        ].compactMap { $0 }
        if !color.isEmpty { table.add("color", color.joined(separator: ", ")) }
        let size = header.profileBytes > 0 ? Readable.bytes(header.profileBytes) : nil
        table.add(
            "profile",
            [details.profileName, size].compactMap { $0 }.joined(separator: ", ").nonEmpty
                ?? (details.colorSpace == "CMYK"
                    ? "none (assuming a default CMYK profile)" : "none (assuming sRGB)"))
        if details.hasGainMap { table.add("gain map", "yes, for HDR displays; variants do not contain it") }
        if details.hasContentCredentials { table.add("credentials", "yes, not verified; variants do not contain them") }
        if !details.unsupportedFeatures.isEmpty {
            table.add("not supported", details.unsupportedFeatures.joined(separator: ", "))
        }
        if let exif = details.exif {
            let place = exif.latitude.flatMap { latitude in exif.longitude.map { "\(latitude), \($0)" } }
            let rows = [
                ("camera", exif.camera), ("lens", exif.lens), ("exposure", exif.exposure), ("taken", exif.date),
                ("position", position ? place : nil),
            ]
            for (name, value) in rows { if let value { table.add(name, value) } }
        }
        table.add("digest", response.digest)
        if let remaining = information.freshness {
            table.add(
                "freshness",
                remaining > .zero
                    ? "fresh for \(remaining.components.seconds) s" : "stale; the origin is contacted on each use")
            for field in information.validators { table.add(field.name.lowercased(), field.value) }
        }
        if let colors = information.colors {
            table.add("average color", colors.average.map { "#" + $0 } ?? "none")
            if !colors.palette.isEmpty {
                table.add("palette", colors.palette.map { "#" + $0 }.joined(separator: " "))
            }
            table.add("blurhash", colors.blurHash)
            table.add("thumbhash", colors.thumbHash)
        }
        return table.text
    }
}

extension String {
    var nonEmpty: String? { isEmpty ? nil : self }
}
