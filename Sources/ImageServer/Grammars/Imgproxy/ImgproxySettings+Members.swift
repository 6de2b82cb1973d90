import PipelineSupport
import Variants

extension ImgproxySettings {
    /// Reads the members of `grammars.imgproxy`.
    init(_ members: inout GrammarMembers) throws(InvalidSetting) {
        keys =
            try members.list("keys", "maps with `key` and `salt`, in quotes if all digits are decimal") { value in
                value.texts(["key", "salt"]).map { KeyPair(key: $0[0], salt: $0[1]) }
            } ?? []
        signatureSize = try members.integer("signatureSize", 1...32) ?? signatureSize
        trustedSignatures = try members.texts("trustedSignatures") ?? []
        unsigned = try members.flag("unsigned")
        presets = try members.map("presets", "text") { if case .string(let text) = $0 { text } else { nil } } ?? [:]
        presetsOnly = try members.flag("presetsOnly") ?? presetsOnly
        options = try members.texts("options") ?? []
        baseURL = try members.text("baseURL")
        localRoot = try members.text("localRoot")
        autoFormats = try members.formats("autoFormats") ?? []
        enforceFormats = try members.formats("enforceFormats") ?? []
        preferredFormats = try members.formats("preferredFormats", among: Self.writable) ?? preferredFormats
        quality = try members.integer("quality", 1...100) ?? quality
        let qualities = try members.map("formatQuality", "a whole number between 1 and 100") { value in
            if case .int(let number) = value, (1...100).contains(number) { number } else { nil }
        }
        for (name, number) in qualities ?? [:] {
            guard let format = ImageFormat.outputs[name] else {
                throw members.fault("formatQuality", "there is no format `\(name)`")
            }
            formatQuality[format] = number
        }
        ttl = try members.integer("ttl", 0...2_147_483_647) ?? ttl
        cacheControlPassthrough = try members.flag("cacheControlPassthrough") ?? cacheControlPassthrough
        animationFrames = try members.integer("animationFrames", 1...100_000) ?? animationFrames
        maxResultDimension = try members.integer("maxResultDimension", 0...1_000_000) ?? maxResultDimension
        watermark = try members.text("watermark")
        watermarkOpacity = try members.number("watermarkOpacity") ?? watermarkOpacity
        skipFormats = try members.formats("skipFormats", among: ImageFormat.allCases) ?? []
        let status = try members.integer("fallbackStatus", 200...599)
        if let fault = status.flatMap(FallbackPicture.fault) { throw members.fault("fallbackStatus", fault) }
        let maxAge = try members.integer("fallbackTtl", 0...2_147_483_647)
        if let path = try members.text("fallback") {
            do throws(InvalidSetting) { fallback = try FallbackPicture(atPath: path, status: status ?? 200) } catch {
                throw members.fault("fallback", error.message)
            }
            fallback?.coversAll = true
            fallback?.maxAge = maxAge ?? 0
        } else if status != nil || maxAge != nil {
            throw members.fault("fallback", "is missing, so `fallbackStatus` and `fallbackTtl` have no effect")
        }
        alwaysRasterizesSVG = try members.flag("alwaysRasterizeSvg") ?? alwaysRasterizesSVG
        stripMetadata = try members.flag("stripMetadata") ?? stripMetadata
        stripColorProfile = try members.flag("stripColorProfile") ?? stripColorProfile
        autoRotate = try members.flag("autoRotate") ?? autoRotate
        securityOptions = try members.flag("securityOptions") ?? securityOptions
        let ceiling = try members.map("securityCeiling", "numbers") { $0.number } ?? [:]
        for (name, number) in ceiling {
            switch name {
            case "animationFrames": securityCeiling.animationFrames = number
            case "resultDimension": securityCeiling.resultDimension = number
            default:
                throw members.fault("securityCeiling", "expected animationFrames or resultDimension, not `\(name)`")
            }
        }
        base64IncludesFilename = try members.flag("base64IncludesFilename") ?? base64IncludesFilename
        argumentsSeparator = try members.text("argumentsSeparator") ?? argumentsSeparator
        urlReplacements =
            try members.list("urlReplacements", "maps with `pattern` and `replacement`") { value in
                value.texts(["pattern", "replacement"]).map { Replacement(pattern: $0[0], replacement: $0[1]) }
            } ?? []
        secret = try members.text("secret")
        queryInSource = try members.text("queryInSource") ?? queryInSource
    }
}

extension JSONValue {
    /// The value as a number, or nil if it is not a number.
    var number: Double? {
        switch self {
        case .int(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }

    /// Returns the texts of these members, or nil if the value is not a map of exactly these texts.
    func texts(_ names: [String]) -> [String]? {
        guard case .object(let members) = self, Set(members.map(\.name)) == Set(names) else { return nil }
        let texts = names.compactMap { name in
            if case .string(let text)? = members.first(where: { $0.name == name })?.value { text } else { nil }
        }
        return texts.count == names.count ? texts : nil
    }
}
