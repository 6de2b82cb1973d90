import HTTPCaching
import PipelineFetching
import PipelineSupport
import Variants

/// The settings of a Next.js application's image optimizer: members of `grammars.next`, and the file
/// `images-manifest.json` that each build of the application writes. Members take precedence.
struct NextSettings: Sendable {
    var unsigned: Bool?
    /// The base of relative URLs, under the name `app`.
    var bases: BaseURLs?
    var widths: Set<Int>
    /// The allowed qualities. If empty, all are allowed.
    var qualities: [Int]
    var formats: [ImageFormat]
    var minimumCacheTTL: Int
    var maximumRedirects: Int
    var disposition: String
    var sendsSVG: Bool
    /// The patterns of the manifest. Nil means that only `sources` restricts the originals.
    private var localPatterns: [NextPattern]?
    private var remotePatterns: [NextPattern]?

    /// The union of the default widths of Next.js 15 and 16.
    static let usualWidths = [
        16, 32, 48, 64, 96, 128, 256, 384, 640, 750, 828, 1080, 1200, 1920, 2048, 3840,
    ]
    private static let dispositions = ["attachment", "inline"]

    /// Reads the members and the manifest.
    init(_ members: inout GrammarMembers) throws(InvalidSetting) {
        unsigned = try members.flag("unsigned")
        var manifest: GrammarMembers?
        if let file = try members.text("manifest") {
            do throws(InvalidSetting) { manifest = try Self.images(inManifest: file) } catch {
                throw members.fault("manifest", error.message)
            }
        }
        func member<Value>(
            _ name: String, _ other: String? = nil,
            _ read: (inout GrammarMembers, String) throws(InvalidSetting) -> Value?
        ) throws(InvalidSetting) -> Value? {
            if let value = try read(&members, name) { return value }
            return try manifest.flatMap { (images) throws(InvalidSetting) in
                var images = images
                return try read(&images, other ?? name)
            }
        }
        bases = try members.baseURL()
        let edges = 1...16_384
        var listed = try members.integers("widths", edges)
        if listed == nil, var images = manifest {
            let device = try images.integers("deviceSizes", edges) ?? []
            listed = try device + (images.integers("imageSizes", edges) ?? [])
        }
        widths = Set(listed ?? Self.usualWidths)
        guard !widths.isEmpty else { throw members.fault("widths", "must name at least one width") }
        qualities =
            try member("qualities") { (members, name) throws(InvalidSetting) in try members.integers(name, 1...100) }
            ?? []
        formats =
            try member("formats") { (members, name) throws(InvalidSetting) in
                try members.formats(name)
            } ?? [.webp]
        minimumCacheTTL =
            try member("minimumCacheTTL") { (members, name) throws(InvalidSetting) in
                try members.integer(name, 0...315_360_000)
            } ?? 14_400
        maximumRedirects =
            try member("maximumRedirects") { (members, name) throws(InvalidSetting) in
                try members.integer(name, 0...20)
            } ?? 3
        disposition =
            try member("disposition", "contentDispositionType") { (members, name) throws(InvalidSetting) in
                try members.value(name, "attachment or inline") {
                    if case .string(let word) = $0, Self.dispositions.contains(word) { word } else { nil }
                }
            } ?? "attachment"
        sendsSVG =
            try member("svg", "dangerouslyAllowSVG") { (members, name) throws(InvalidSetting) in
                try members.flag(name)
            } ?? false
        guard var images = manifest else { return }
        do throws(InvalidSetting) {
            localPatterns = try images.list("localPatterns", "patterns", NextPattern.init(local:))
            remotePatterns = try images.list("remotePatterns", "patterns", NextPattern.init(remote:)) ?? []
            let domains = try images.list("domains", "hosts") { if case .string(let host) = $0 { host } else { nil } }
            remotePatterns? += (domains ?? []).map(NextPattern.init(domain:))
        } catch {
            throw members.fault("manifest", error.message)
        }
    }

    private static let manifestLimit = 1 << 20

    /// Returns the member `images` of a manifest.
    private static func images(inManifest path: String) throws(InvalidSetting) -> GrammarMembers {
        let bytes: [UInt8]
        do throws(LocalFile.Failure) { bytes = try LocalFile.open(path, byteLimit: manifestLimit).bytes() } catch {
            throw InvalidSetting(error.message)
        }
        let manifest: JSONValue
        do throws(JSONParser.Malformed) { manifest = try JSONParser.parse(bytes) } catch {
            throw InvalidSetting("\(path): not valid JSON: \(error.description)")
        }
        guard case .object(let members) = manifest, let images = members.first(where: { $0.name == "images" })?.value
        else { throw InvalidSetting("\(path): not an images-manifest.json of Next.js; `images` is missing") }
        return try GrammarMembers(images, of: path + ": images")
    }

    // MARK: Sources

    /// Whether a manifest restricts absolute URLs.
    var hasPatterns: Bool { remotePatterns != nil }

    /// Whether the patterns of the manifest allow a path of the application.
    func allowsLocal(_ url: SourceURL) -> Bool {
        guard let localPatterns else { return true }
        return localPatterns.contains { $0.matches(path: url.path, search: url.query.map { "?" + $0 } ?? "") }
    }

    /// Whether the patterns of the manifest allow a URL.
    func allowsRemote(_ url: SourceURL) -> Bool {
        guard let remotePatterns else { return true }
        return remotePatterns.contains { $0.matches(url) }
    }

    // MARK: Responses

    /// Gives a successful response the header fields of Next.js.
    ///
    /// - Parameter url: The parameter `url`.
    func present(_ response: inout ServerResponse, _ picture: PresentedPicture, url: String) {
        let handling =
            switch picture.handling {
            case .hit: "HIT"
            case .miss: "MISS"
            case .stale: "STALE"
            }
        let isClosed = response["cache-control"].map { $0.contains("no-store") || $0.contains("private") } == true
        response.fields.removeAll { field in
            ["content-security-policy", "content-disposition", "link"].contains(FieldLines.lowercased(field.name))
        }
        if !isClosed, let index = response.fields.firstIndex(where: { FieldLines.isSameName($0.name, "cache-control") })
        {
            response.fields[index].value = cacheControl(picture.original, url: url)
        }
        response.fields += [
            HeaderField(
                "Content-Disposition",
                SourceFields.disposition(
                    disposition, path: url.prefix { $0 != "?" && $0 != "#" }, endsAtFirstDot: true,
                    picture.format.map(Self.fileExtension) ?? String(picture.mediaType.dropFirst("image/".count)))),
            HeaderField("Content-Security-Policy", "script-src 'none'; frame-src 'none'; sandbox;"),
            HeaderField("X-Nextjs-Cache", handling),
        ]
    }

    private static func fileExtension(_ format: ImageFormat) -> String {
        format == .jpeg ? "jpeg" : format.fileExtension
    }

    private func cacheControl(_ original: StoredResponse, url: String) -> String {
        if url.hasPrefix("/_next/static/media") { return "public, max-age=315360000, immutable" }
        let control = CacheControl(fields: original.fields)
        var age = minimumCacheTTL
        for name in ["s-maxage", "max-age"] {
            guard case .value(let seconds) = control.seconds(name) else { continue }
            age = max(age, seconds)
            break
        }
        return "public, max-age=\(age), must-revalidate"
    }
}
