// Messages between the pipeline and its workers, over sockets that preserve message boundaries.
//
//     pipeline ─ WorkerRequest + descriptors: original, output, masks ─▶ worker     requests socket
//     pipeline ◀─ WorkerReply: ready; encoding, then finished or failed ── worker
//     pipeline ─ WorkerStop ─▶ worker                                               stops socket
//
// The worker is not trusted. All of its messages are read with bounds checks (`MessageCoder`), and its description of
// the output is compared with the output's bytes.

enum WorkerProtocol {
    /// The first bytes of every message: `IPW` and the version, which is incremented with every change to a message.
    static let magic: UInt32 = 0x4950_570A
    /// The maximum length of a message in bytes.
    static let messageLimit = 32_768
    /// The maximum number of masks and overlays in a recipe.
    static let maskLimit = 2 * Recipe.stepLimit
    /// The valid lengths of an original, mask or output in bytes.
    static let byteRange = 0...(1 << 40)
    /// The valid edge lengths of a picture.
    static let edgeRange = 1...(1 << 24)
    /// The maximum length of a failure text in bytes.
    static let textLimit = 4096
    /// The maximum length of the list of libraries in bytes. There are about a hundred libraries.
    static let librariesLimit = 16_384
}

/// A render request for a worker. The bytes are passed as descriptors: the original, the output, and one for each mask.
struct WorkerRequest: WorkerMessage, Sendable, Hashable {
    enum Kind: String, Sendable { case variant, pixels }

    struct Mask: Sendable, Hashable {
        var name: String
        var count: Int
    }

    var id: UInt64 = 0
    var kind = Kind.variant
    /// The length of the original in bytes.
    var count = 0
    var header = ImageHeader(format: .jpeg, encodedWidth: 1, encodedHeight: 1)
    /// The recipe's canonical text.
    var recipe = ""
    var output = ResolvedOutput(format: .jpeg)
    var quality = RenderQuality.balanced
    var light = RenderLight.auto
    var limits = RenderLimits()
    var masks: [Mask] = []
    var shared: SharedDecode?

    mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        try coder.integer(&id)
        try coder.choice("kind", &kind)
        try coder.count("a length", &count)
        try header.code(&coder)
        try coder.text("a recipe", &recipe, limit: Recipe.characterLimit * 4)
        try output.code(&coder)
        try coder.choice("quality", &quality)
        try coder.choice("light", &light)
        try limits.code(&coder)
        try coder.list("masks", &masks, 0...WorkerProtocol.maskLimit, blank: Mask(name: "", count: 0)) {
            mask, coder throws(MessageError) in
            try coder.text("a name", &mask.name, limit: 256)
            try coder.count("a mask", &mask.count)
        }
        var isShared = shared != nil
        try coder.flag(&isShared)
        guard isShared else { return }
        var decode = shared ?? SharedDecode(name: "", shrink: 1, targets: [], members: 2)
        try decode.code(&coder)
        shared = decode
    }
}

extension ImageHeader {
    fileprivate mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        try coder.choice("format", &format)
        try coder.count("a width", &encodedWidth)
        try coder.count("a height", &encodedHeight)
        try coder.count("a number of pages", &pages)
        try coder.flag(&hasAlpha)
        try coder.count("an orientation", &orientation)
        try coder.count("a number of scans", &scans)
        try coder.count("a profile", &profileBytes)
        try coder.flag(&hasFewColors)
        try coder.count("held bytes", &heldBytes)
        try coder.count("a number of levels", &levels, 0...62)
        try coder.flag(&readsWindows)
        var obstacle = transcodingObstacle?.rawValue ?? 0
        try coder.count("an obstacle", &obstacle, 0...TranscodingObstacle.allCases.count)
        transcodingObstacle = TranscodingObstacle(rawValue: obstacle)
    }
}

extension ResolvedOutput {
    fileprivate mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        try coder.choice("format", &format)
        try coder.count("a quality", &quality, 0...100)
        try coder.flag(&isLossless)
        try coder.flag(&mayBeLossless)
        var (budget, target, kept) = (maxBytes ?? 0, score ?? 0, keep.rawValue)
        try coder.count("a budget", &budget)
        maxBytes = budget > 0 ? budget : nil
        try coder.count("a score", &target, 0...100)
        score = target > 0 ? target : nil
        try coder.flag(&isProgressive)
        try coder.choice("chroma", &chroma)
        try coder.count("an effort", &effort, 0...9)
        try coder.flag(&isEffortGiven)
        try coder.count("metadata", &kept, 0...63)
        keep = KeptMetadata(rawValue: kept)
        try coder.list("formats", &alternatives, 0...ImageFormat.allCases.count, blank: .avif) {
            format, coder throws(MessageError) in
            try coder.choice("format", &format)
        }
        try coder.flag(&isSecondPass)
        try coder.flag(&transcodes)
        try coder.flag(&transcodesIfSmaller)
    }
}

extension RenderLimits {
    fileprivate mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        let counts = [\Self.pixels, \.bytes, \.frames, \.scans, \.outputEdge, \.profileBytes]
        for path in counts { try coder.count("a limit", &self[keyPath: path]) }
        var known = Array(formats)
        try coder.list("formats", &known, 0...ImageFormat.allCases.count, blank: .jpeg) {
            format, coder throws(MessageError) in
            try coder.choice("format", &format)
        }
        formats = Set(known)
        try coder.choice("a handling of SVG", &svg)
        try coder.flag(&acceptsDamaged)
        try coder.span("a timeout", &timeout)
        try coder.span("a timeout", &encodeTimeout)
    }
}

extension SharedDecode {
    fileprivate mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        try coder.text("a digest", &name, limit: 128)
        try coder.count("a shrink", &shrink, WorkerProtocol.edgeRange)
        try coder.count("a number of renders", &members, 2...(1 << 24))
        let blank = Target(size: PixelSize(width: 1, height: 1), box: 1, light: .auto)
        try coder.list("sizes", &targets, 0...Self.targetLimit, blank: blank) { target, coder throws(MessageError) in
            try coder.count("a width", &target.size.width, WorkerProtocol.edgeRange)
            try coder.count("a height", &target.size.height, WorkerProtocol.edgeRange)
            try coder.count("a box", &target.box, 1...Self.boxLimit)
            try coder.choice("light", &target.light)
        }
        try coder.require(Set(targets).count == targets.count, "a duplicate size")
        var hasArea = area != nil
        try coder.flag(&hasArea)
        try coder.require(hasArea == targets.isEmpty, "sizes or an area")
        guard hasArea else { return }
        var rectangle = area ?? PixelRectangle(x: 0, y: 0, width: 1, height: 1)
        for path in [\PixelRectangle.x, \.y] { try coder.count("an offset", &rectangle[keyPath: path], 0...(1 << 24)) }
        for path in [\PixelRectangle.width, \.height] {
            try coder.count("an edge", &rectangle[keyPath: path], 1...(1 << 24))
        }
        area = rectangle
    }
}

/// Asks a worker to stop a render. Has no effect on a render that has already ended.
struct WorkerStop: WorkerMessage, Sendable, Hashable {
    var id: UInt64 = 0

    mutating func code(_ coder: inout MessageCoder) throws(MessageError) { try coder.integer(&id) }
}

enum WorkerReply: WorkerMessage, Sendable, Hashable {
    /// The worker has started and applied its sandbox.
    case ready(Ready)
    /// The pixels of a render are in memory, and encoding is next.
    case encoding(id: UInt64)
    case finished(Finished)
    case failed(id: UInt64, RenderError.Code, message: String)

    struct Ready: Sendable, Hashable {
        /// `RenderRevision.rendering` of the worker's program. A worker with a different revision would render
        /// different variants.
        var revision = ""
        var protection = WorkerProtection(bits: 0, landlock: 0)
        /// The reason why the worker cannot render. Empty if it can render.
        var failure = ""
        var libraries = RenderLibraries.unknown

        mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
            try coder.text("a revision", &revision, limit: WorkerProtocol.textLimit)
            var (bits, landlock) = (protection.bits, protection.landlock)
            try coder.integer(&bits)
            try coder.count("a version", &landlock, 0...1000)
            protection = WorkerProtection(bits: bits, landlock: landlock)
            try coder.text("a message", &failure, limit: WorkerProtocol.textLimit)
            // Without their files, the libraries cannot be cached for later processes.
            if libraries.text.utf8.count > WorkerProtocol.librariesLimit { libraries.files = [] }
            var text = libraries.text
            try coder.text("libraries", &text, limit: WorkerProtocol.librariesLimit)
            guard let known = RenderLibraries(text: text) else { throw MessageError("libraries that cannot be read") }
            libraries = known
        }
    }

    struct Finished: Sendable, Hashable {
        var id: UInt64 = 0
        /// The length of the output in bytes.
        var count = 0
        var width = 1
        var height = 1
        var hasAlpha = false
        var isDamaged = false
        /// `RenderedVariant.reencodingReason`, or an empty text.
        var reencodingReason = ""
        /// The milliseconds for decoding, operations and encoding, and the CPU time of all three.
        var decode = 0.0
        var operations = 0.0
        var encode = 0.0
        var cpu = 0.0

        mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
            try coder.integer(&id)
            try coder.count("a length", &count)
            try coder.count("a width", &width, WorkerProtocol.edgeRange)
            try coder.count("a height", &height, WorkerProtocol.edgeRange)
            try coder.flag(&hasAlpha)
            try coder.flag(&isDamaged)
            try coder.text("a reason", &reencodingReason, limit: WorkerProtocol.textLimit)
            let times = [\Self.decode, \.operations, \.encode, \.cpu]
            for path in times { try coder.amount("a time", &self[keyPath: path]) }
        }
    }

    init() { self = .ready(Ready()) }

    private enum Kind: String {
        case ready, encoding, finished, failed
    }

    private var kind: Kind {
        switch self {
        case .ready: .ready
        case .encoding: .encoding
        case .finished: .finished
        case .failed: .failed
        }
    }

    mutating func code(_ coder: inout MessageCoder) throws(MessageError) {
        var kind = kind
        try coder.choice("kind", &kind)
        switch kind {
        case .ready:
            var ready = if case .ready(let own) = self { own } else { Ready() }
            try ready.code(&coder)
            self = .ready(ready)
        case .encoding:
            var id: UInt64 = if case .encoding(let own) = self { own } else { 0 }
            try coder.integer(&id)
            self = .encoding(id: id)
        case .finished:
            var finished = if case .finished(let own) = self { own } else { Finished() }
            try finished.code(&coder)
            self = .finished(finished)
        case .failed:
            var (id, code, message) =
                if case .failed(let id, let code, let text) = self { (id, code, text) } else {
                    (0 as UInt64, RenderError.Code.undecodable, "")
                }
            try coder.integer(&id)
            try coder.choice("error", &code)
            try coder.require(RenderError.Code.all.contains(code), "an unknown error")
            try coder.text("a message", &message, limit: WorkerProtocol.textLimit)
            self = .failed(id: id, code, message: message)
        }
    }
}
