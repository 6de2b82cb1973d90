import PipelineSupport
import Variants

/// The options of imgproxy's free edition (https://docs.imgproxy.net/usage/processing).
enum ImgproxyOptionTable {
    /// The next argument of an option, or the next arguments.
    enum Part: Sendable {
        case flag(any WritableKeyPath<ImgproxyOptions, Bool> & Sendable)
        case number(any WritableKeyPath<ImgproxyOptions, Double> & Sendable, ClosedRange<Double> = 0...999_999_999)
        case whole(any WritableKeyPath<ImgproxyOptions, Double> & Sendable, ClosedRange<Double> = 0...999_999_999)
        /// `type:x:y`.
        case gravity(any WritableKeyPath<ImgproxyOptions, ImgproxyOptions.Gravity> & Sendable, smart: Bool)
        /// A number of arguments with a form of their own. The function reads from position 0.
        case own(Int, @Sendable (inout ImgproxyOptions, ImgproxyArguments) throws(ImgproxyProblem) -> Void)

        var count: Int {
            switch self {
            case .flag, .number, .whole: 1
            case .gravity: 3
            case .own(let count, _): count
            }
        }
    }

    struct Entry: Sendable {
        /// The name and its short forms.
        let names: [Substring]
        let parts: [Part]
        /// Whether the option changes limits (`ImgproxySettings.securityOptions`).
        var isSecurity: Bool { names[0].hasPrefix("max_") && names[0] != "max_bytes" }
    }

    private static let extendParts: [Part] = [.flag(\.extends.isOn), .gravity(\.extends.gravity, smart: false)]
    private static let sizeParts: [Part] = [.whole(\.size.x), .whole(\.size.y), .flag(\.enlarges)] + extendParts

    private static let entries: [Entry] = [
        ("resize rs", [.own(1, ImgproxyOptions.type)] + sizeParts),
        ("size s", sizeParts),
        ("resizing_type rt", [.own(1, ImgproxyOptions.type)]),
        ("width w", [.whole(\.size.x)]),
        ("height h", [.whole(\.size.y)]),
        ("min-width mw", [.whole(\.minimum.x)]),
        ("min-height mh", [.whole(\.minimum.y)]),
        ("zoom z", [.own(2, ImgproxyOptions.zoom)]),
        ("dpr", [.number(\.dpr, 0.001...1000)]),
        ("enlarge el", [.flag(\.enlarges)]),
        ("extend ex", extendParts),
        (
            "extend_aspect_ratio extend_ar exar",
            [.flag(\.extendsRatio.isOn), .gravity(\.extendsRatio.gravity, smart: false)]
        ),
        ("gravity g", [.gravity(\.gravity, smart: true)]),
        ("crop c", [.number(\.crop.x), .number(\.crop.y), .gravity(\.cropGravity, smart: true)]),
        ("trim t", [.own(4, ImgproxyOptions.trim)]),
        ("padding pd", [.own(4, ImgproxyOptions.padding)]),
        ("auto_rotate ar", [.flag(\.autoRotate)]),
        ("rotate rot", [.own(1, ImgproxyOptions.rotation)]),
        ("flip fl", [.flag(\.flipsHorizontally), .flag(\.flipsVertically)]),
        ("background bg", [.own(3, ImgproxyOptions.background)]),
        ("blur bl", [.number(\.blur, 0...100)]),
        ("sharpen sh", [.number(\.sharpen, 0...100)]),
        ("pixelate pix", [.whole(\.pixelate, 0...8192)]),
        (
            "watermark wm",
            [
                .number(\.watermark.opacity, 0...1), .own(1, ImgproxyOptions.position),
                .number(\.watermark.gravity.offset.x, -999_999_999...999_999_999),
                .number(\.watermark.gravity.offset.y, -999_999_999...999_999_999),
                .number(\.watermark.scale, 0...1000),
            ]
        ),
        ("strip_metadata sm", [.flag(\.stripMetadata)]),
        ("keep_copyright kcr", [.flag(\.keepCopyright)]),
        ("strip_color_profile scp", [.flag(\.stripColorProfile)]),
        ("quality q", [.whole(\.quality, 0...100)]),
        ("format_quality fq", [.own(24, ImgproxyOptions.formatQuality)]),
        ("max_bytes mb", [.whole(\.maxBytes)]),
        ("format f ext", [.own(1, ImgproxyOptions.format)]),
        ("skip_processing skp", [.own(12, ImgproxyOptions.skippedFormats)]),
        ("raw", [.flag(\.isRaw)]),
        ("cachebuster cb", [.own(1, { (options, arguments) in options.cachebuster = String(arguments[0] ?? "") })]),
        ("expires exp", [.whole(\.expiry, 0...99_999_999_999)]),
        ("filename fn", [.own(2, ImgproxyOptions.fileName)]),
        ("return_attachment att", [.flag(\.isAttachment)]),
        // `ImgproxyOptionReading` applies presets.
        ("preset pr", [.own(100, { (_, _) in })]),
        ("max_src_resolution msr", [.number(\.limits.sourceMegapixels)]),
        ("max_src_file_size msfs", [.whole(\.limits.sourceBytes, 0...99_999_999_999)]),
        ("max_animation_frames maf", [.whole(\.limits.animationFrames)]),
        ("max_animation_frame_resolution mafr", [.number(\.limits.frameMegapixels)]),
        ("max_result_dimension mrd", [.whole(\.limits.resultDimension)]),
        // Without effect, because outputs have 8 bits, and embedded thumbnails are not used.
        ("preserve_hdr ph", [.own(1, { (_, _) in })]),
        ("enforce_thumbnail eth", [.own(1, { (_, _) in })]),
    ].map { Entry(names: $0.split(separator: " "), parts: $1) }

    private static let byName = Dictionary(
        uniqueKeysWithValues: entries.flatMap { entry in entry.names.map { ($0, entry) } })

    private static let commercialNames = Set(
        """
        resizing_algorithm ra objects_position obj_pos op crop_aspect_ratio crop_ar car background_alpha bga adjust a \
        brightness br contrast co saturation sa monochrome mc duotone dt unsharp_masking ush blur_detections bd \
        draw_detections dd colorize col gradient gr watermark_url wmu watermark_text wmt watermark_size wms \
        watermark_rotate wm_rot wmr watermark_shadow wmsh style st dpi autoquality aq jpeg_options jpgo png_options \
        pngo webp_options webpo avif_options avifo page pg pages pgs disable_animation da video_thumbnail_second vts \
        video_thumbnail_keyframes vtk video_thumbnail_tile vtt video_thumbnail_animation vta fallback_image_url fiu \
        hashsum hs
        """.split(separator: " "))

    /// The options in `/info` URLs.
    static let information = [
        "cachebuster", "expires", "max_src_resolution", "max_src_file_size", "max_animation_frame_resolution",
    ]

    static func entry(named name: Substring) -> Entry? { byName[name] }

    static func entry(_ name: Substring) throws(ImgproxyProblem) -> Entry {
        if let entry = byName[name] { return entry }
        guard !commercialNames.contains(name) else { throw commercial(name) }
        throw .invalidURL("there is no option `\(name.prefix(40))`")
    }

    static func commercial(_ name: some StringProtocol) -> ImgproxyProblem {
        .invalidURL("`\(name)` is part of the commercial edition and not supported here")
    }

    /// Returns the format with one of imgproxy's names, even if it cannot be written.
    static func format(_ name: Substring, _ option: Substring) throws(ImgproxyProblem) -> ImageFormat {
        guard !["best", "pdf", "psd", "mp4"].contains(name) else { throw commercial("\(option):\(name)") }
        guard let format = ImageFormat(fileExtension: String(name)) else {
            throw .invalidURL("`\(option)`: there is no format `\(name.prefix(40))`")
        }
        return format
    }
}

extension ImgproxyOptions {
    mutating func apply(_ entry: ImgproxyOptionTable.Entry, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        let most = entry.parts.reduce(0) { $0 + $1.count }
        guard arguments.values.count <= most else {
            throw .invalidURL("`\(arguments.option)` has \(arguments.values.count) arguments; the maximum is \(most)")
        }
        var rest = arguments
        for part in entry.parts {
            switch part {
            case .flag(let path): rest.read(flag: 0, into: &self[keyPath: path])
            case .number(let path, let range): try rest.read(0, into: &self[keyPath: path], range)
            case .whole(let path, let range): try rest.read(0, into: &self[keyPath: path], range, isWhole: true)
            case .gravity(let path, let smart): try rest.read(gravity: &self[keyPath: path], smart: smart)
            case .own(_, let read): try read(&self, rest)
            }
            rest.values = rest.values.dropFirst(part.count)
        }
    }

    // MARK: Arguments with a form of their own

    fileprivate static func type(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        guard let text = arguments[0] else { return }
        guard let type = ResizingType(rawValue: String(text)) else {
            throw arguments.problem(text, "fit, fill, fill-down, force or auto")
        }
        options.type = type
    }

    /// A single number applies to both edges.
    fileprivate static func zoom(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        try arguments.read(0, into: &options.zoom.x, 0.001...1000)
        if arguments.values.count == 1 { options.zoom.y = options.zoom.x }
        try arguments.read(1, into: &options.zoom.y, 0.001...1000)
    }

    fileprivate static func trim(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        var trim = options.trim ?? Trim()
        try arguments.read(0, into: &trim.threshold, 0...255)
        if let text = arguments[1] { trim.color = try arguments.color(text) }
        arguments.read(flag: 2, into: &trim.isEqualHorizontally)
        arguments.read(flag: 3, into: &trim.isEqualVertically)
        options.trim = trim
    }

    /// A value also applies to later sides without a value, as in CSS.
    fileprivate static func padding(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        for (index, sides) in [[0, 1, 2, 3], [1, 3], [2], [3]].enumerated() where arguments[index] != nil {
            var value = 0.0
            try arguments.read(index, into: &value, isWhole: true)
            for side in sides { options.padding[side] = value }
        }
    }

    fileprivate static func rotation(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        guard let text = arguments[0] else { return }
        var degrees = 0.0
        try arguments.read(0, into: &degrees, -99_999...99_999, isWhole: true)
        guard Int(degrees).isMultiple(of: 90) else { throw arguments.problem(text, "a multiple of 90") }
        options.rotation = (Int(degrees) % 360 + 360) % 360
    }

    /// Reads hexadecimal digits, or `red:green:blue`. An empty argument removes the background.
    fileprivate static func background(
        _ options: inout Self, _ arguments: ImgproxyArguments
    ) throws(ImgproxyProblem) {
        guard arguments.values.count > 1 else {
            options.background = if let text = arguments[0] { try arguments.color(text) } else { nil }
            return
        }
        var values = SIMD3(repeating: -1.0)
        for index in 0..<3 { try arguments.read(index, into: &values[index], 0...255, isWhole: true) }
        guard values.min() >= 0 else { throw arguments.problem("", "red, green and blue, 0…255") }
        options.background = hex((0..<3).map { UInt8(values[$0]) })
    }

    fileprivate static func position(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        guard let text = arguments[0] else { return }
        guard text != "ch" else { throw ImgproxyOptionTable.commercial("\(arguments.option):ch") }
        options.watermark.isTiled = text == "re"
        guard let kind = text == "re" ? .ce : Gravity.Kind(rawValue: String(text)), kind != .sm, kind != .fp else {
            throw arguments.problem(text, "ce, no, so, ea, we, noea, nowe, soea, sowe or re")
        }
        options.watermark.gravity.kind = kind
    }

    fileprivate static func format(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        if let name = arguments[0] { options.format = try ImgproxyOptionTable.format(name, arguments.option) }
    }

    fileprivate static func formatQuality(
        _ options: inout Self, _ arguments: ImgproxyArguments
    ) throws(ImgproxyProblem) {
        for index in stride(from: 0, to: arguments.values.count, by: 2) {
            let format = try ImgproxyOptionTable.format(arguments[index] ?? "", arguments.option)
            var value = 0.0
            try arguments.read(index + 1, into: &value, 1...100, isWhole: true)
            guard value > 0 else { throw arguments.problem(arguments[index] ?? "", "a quality after each format") }
            options.formatQuality[format] = Int(value)
        }
    }

    fileprivate static func skippedFormats(
        _ options: inout Self, _ arguments: ImgproxyArguments
    ) throws(ImgproxyProblem) {
        for name in arguments.values where !name.isEmpty {
            options.skippedFormats.insert(try ImgproxyOptionTable.format(name, arguments.option))
        }
    }

    fileprivate static func fileName(_ options: inout Self, _ arguments: ImgproxyArguments) throws(ImgproxyProblem) {
        guard let text = arguments[0] else { return }
        var isBase64 = false
        arguments.read(flag: 1, into: &isBase64)
        guard let bytes = isBase64 ? Base64.urlDecoded(text) : percentDecoded(text),
            bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), let name = String(validating: bytes, as: UTF8.self)
        else { throw arguments.problem(text, "a percent-encoded file name, or a base64url-encoded one and `1`") }
        options.fileName = name
    }
}
