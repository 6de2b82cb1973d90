/// Applies options in the order in which they are written. The last option of a kind wins, part by part.
struct ImgproxyOptionReading {
    private let settings: ImgproxySettings
    private(set) var options: ImgproxyOptions
    /// The presets that are being applied, outermost first.
    private var active: [String] = []
    private var count = 0
    /// Presets can use each other, so the number of options does not follow from the length of the URL.
    private static let limit = 1000

    init(_ settings: ImgproxySettings) {
        self.settings = settings
        options = ImgproxyOptions(settings)
    }

    /// Returns the options of a URL. The preset `default` is applied first.
    ///
    /// - Parameters:
    ///   - segments: the options as written, or one list of presets if `settings.presetsOnly` is on.
    ///   - isInformation: whether the URL asks for information. Presets and options about pictures do not apply.
    static func options(
        of segments: ArraySlice<Substring>, _ settings: ImgproxySettings, isInformation: Bool
    ) throws(ImgproxyProblem) -> ImgproxyOptions {
        var reading = Self(settings)
        if !isInformation, settings.presets["default"] != nil { try reading.addPreset("default") }
        let allowed = isInformation ? ImgproxyOptionTable.information : settings.options
        let isPresets = settings.presetsOnly && !isInformation
        for segment in segments {
            let parts = ImgproxyReader.split(segment, reading.separator)
            if isPresets {
                try reading.addPresets(parts[...])
            } else {
                let entry = try ImgproxyOptionTable.entry(parts[0])
                guard allowed.isEmpty || allowed.contains(where: { entry.names.contains($0[...]) }) else {
                    throw .invalidURL("`\(parts[0])` is not allowed here")
                }
                guard !entry.isSecurity || settings.securityOptions else {
                    throw .forbidden("`\(parts[0])` is allowed only with the setting `securityOptions`")
                }
                try reading.apply(entry, parts)
                let hasSize = ["resize", "size", "width", "height"].contains(entry.names[0])
                reading.options.writesSize = reading.options.writesSize || hasSize
            }
        }
        return reading.options
    }

    private var separator: Unicode.Scalar { settings.argumentsSeparator.unicodeScalars.first ?? ":" }

    /// Applies a preset. A preset that is used again inside itself is skipped.
    mutating func addPreset(_ name: String) throws(ImgproxyProblem) {
        guard let text = settings.presets[name] else {
            throw .invalidURL("`preset`: there is no preset `\(name.prefix(40))`")
        }
        guard !active.contains(name) else { return }
        active.append(name)
        for segment in ImgproxyReader.split(text[...], "/") where !segment.isEmpty {
            let parts = ImgproxyReader.split(segment, separator)
            try apply(ImgproxyOptionTable.entry(parts[0]), parts)
        }
        active.removeLast()
    }

    private mutating func addPresets(_ names: ArraySlice<Substring>) throws(ImgproxyProblem) {
        for name in names { try addPreset(String(name)) }
    }

    private mutating func apply(
        _ entry: ImgproxyOptionTable.Entry, _ parts: [Substring]
    ) throws(ImgproxyProblem) {
        count += 1
        guard count <= Self.limit else { throw .invalidURL("the URL and its presets have over \(Self.limit) options") }
        guard entry.names[0] != "preset" else { return try addPresets(parts[1...]) }
        try options.apply(entry, ImgproxyArguments(option: parts[0], values: parts.dropFirst()))
    }
}
