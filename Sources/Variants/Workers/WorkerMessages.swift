// Messages between the pipeline and its workers, over sockets that preserve message boundaries.
//
//     pipeline ─ WorkerRequest + descriptors: original, output, masks ─▶ worker     requests socket
//     pipeline ◀─ WorkerReply: ready; encoding, then finished or failed ── worker
//     pipeline ─ WorkerStop ─▶ worker                                               stops socket
//
// Integers are little-endian, texts follow their length (UInt16). The worker is not trusted: whatever it sends is read
// with every bound checked, and what it says about the output is checked against the output's bytes.

enum WorkerProtocol {
    /// Begins every message: `IPW` and the version, which is increased with every change of a message.
    static let magic: UInt32 = 0x4950_5708
    /// The longest message in bytes.
    static let messageLimit = 32_768
    /// The most masks and overlays of one recipe.
    static let maskLimit = 2 * Recipe.stepLimit
    /// The length of an original, mask or output in bytes.
    static let byteRange = 0...(1 << 40)
}

/// A render as sent to a worker; the bytes are passed as descriptors: original, output, then one for each mask.
struct WorkerRequest: Sendable, Hashable {
    enum Kind: UInt8, Sendable { case variant = 1, pixels = 2 }

    struct Mask: Sendable, Hashable {
        var name: String
        var count: Int
    }

    var id: UInt64
    var kind: Kind
    /// The length of the original in bytes.
    var count: Int
    var header: ImageHeader
    /// The recipe's canonical text.
    var recipe: String
    var output: ResolvedOutput
    var quality: RenderQuality
    var light: RenderLight
    var limits: RenderLimits
    var masks: [Mask]
    var shared: SharedDecode?

    private static var countedLimits: [WritableKeyPath<RenderLimits, Int>] {
        [\.pixels, \.bytes, \.frames, \.scans, \.outputEdge, \.profileBytes]
    }

    var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.integer(WorkerProtocol.magic)
        writer.integer(id)
        writer.integer(kind.rawValue)
        writer.count(count)
        writer.text(header.format.rawValue)
        for value in [
            header.width, header.height, header.pages, header.orientation, header.scans, header.profileBytes,
            header.heldBytes,
        ] {
            writer.count(value)
        }
        writer.flag(header.hasAlpha)
        writer.flag(header.hasFewColours)
        writer.text(recipe)
        writer.text(output.format.rawValue)
        writer.count(output.quality)
        writer.flag(output.isLossless)
        writer.flag(output.mayBeLossless)
        writer.count(output.maxBytes ?? 0)
        writer.flag(output.isProgressive)
        writer.text(output.chroma.rawValue)
        writer.count(output.effort)
        writer.flag(output.isEffortGiven)
        writer.count(output.keep.rawValue)
        writer.text(quality.rawValue)
        writer.text(light.rawValue)
        for path in Self.countedLimits { writer.count(limits[keyPath: path]) }
        writer.count(limits.formats.reduce(0) { $0 | 1 << (ImageFormat.allCases.firstIndex(of: $1) ?? 0) })
        writer.text(limits.damaged.rawValue)
        writer.double(limits.seconds)
        writer.double(limits.encodeSeconds)
        writer.count(masks.count)
        for mask in masks {
            writer.text(mask.name)
            writer.count(mask.count)
        }
        writer.flag(shared != nil)
        guard let shared else { return writer.bytes }
        writer.text(shared.name)
        for value in [shared.shrink, shared.members, shared.targets.count] { writer.count(value) }
        for target in shared.targets {
            for value in [target.size.width, target.size.height, target.box] { writer.count(value) }
            writer.text(target.light.rawValue)
        }
        return writer.bytes
    }
}

extension WorkerRequest {
    init(_ bytes: [UInt8]) throws(MessageError) {
        var reader = MessageReader(bytes)
        guard try reader.integer(UInt32.self) == WorkerProtocol.magic else { throw MessageError("another protocol") }
        id = try reader.integer(UInt64.self)
        guard let kind = Kind(rawValue: try reader.integer(UInt8.self)) else { throw MessageError("an unknown kind") }
        self.kind = kind
        let bytes = WorkerProtocol.byteRange
        count = try reader.count("a length", bytes)
        let format = try reader.choice("format", ImageFormat.self)
        var numbers: [Int] = []
        for what in [
            "a width", "a height", "a number of pages", "an orientation", "a number of scans", "a profile",
            "held bytes",
        ] {
            numbers.append(try reader.count(what, 0...(1 << 40)))
        }
        header = ImageHeader(
            format: format, width: numbers[0], height: numbers[1], pages: numbers[2], hasAlpha: try reader.flag(),
            orientation: numbers[3], scans: numbers[4], profileBytes: numbers[5], hasFewColours: try reader.flag(),
            heldBytes: numbers[6])
        recipe = try reader.text("a recipe", limit: Recipe.characterLimit * 4)
        output = ResolvedOutput(format: try reader.choice("format", ImageFormat.self))
        output.quality = try reader.count("a quality", 0...100)
        output.isLossless = try reader.flag()
        output.mayBeLossless = try reader.flag()
        let budget = try reader.count("a budget", bytes)
        output.maxBytes = budget > 0 ? budget : nil
        output.isProgressive = try reader.flag()
        output.chroma = try reader.choice("chroma", ChromaResolution.self)
        output.effort = try reader.count("an effort", 0...9)
        output.isEffortGiven = try reader.flag()
        output.keep = KeptMetadata(rawValue: try reader.count("metadata", 0...31))
        quality = try reader.choice("quality", RenderQuality.self)
        light = try reader.choice("light", RenderLight.self)
        limits = RenderLimits()
        for path in Self.countedLimits { limits[keyPath: path] = try reader.count("a limit", bytes) }
        let formats = try reader.count("formats", 0...(1 << ImageFormat.allCases.count) - 1)
        limits.formats = Set(ImageFormat.allCases.enumerated().filter { formats >> $0.offset & 1 == 1 }.map(\.element))
        limits.damaged = try reader.choice("damaged", DamagedOriginals.self)
        limits.seconds = try reader.amount("seconds")
        limits.encodeSeconds = try reader.amount("seconds")
        masks = []
        for _ in 0..<(try reader.count("a number of masks", 0...WorkerProtocol.maskLimit)) {
            masks.append(
                Mask(name: try reader.text("a name", limit: 256), count: try reader.count("a mask", bytes)))
        }
        if try reader.flag() { shared = try Self.shared(&reader) }
        try reader.finish()
    }
}

extension WorkerRequest {
    private static func shared(_ reader: inout MessageReader) throws(MessageError) -> SharedDecode {
        let name = try reader.text("a digest", limit: 128)
        let shrink = try reader.count("a shrink", 1...(1 << 24))
        let members = try reader.count("a number of renders", 2...(1 << 24))
        var targets: [SharedDecode.Target] = []
        for _ in 0..<(try reader.count("a number of sizes", 1...SharedDecode.targetLimit)) {
            let edges = 1...(1 << 24)
            let size = PixelSize(width: try reader.count("a width", edges), height: try reader.count("a height", edges))
            targets.append(
                SharedDecode.Target(
                    size: size, box: try reader.count("a box", 1...SharedDecode.boxLimit),
                    light: try reader.choice("light", RenderLight.self)))
        }
        guard Set(targets).count == targets.count else { throw MessageError("a duplicate size") }
        return SharedDecode(name: name, shrink: shrink, targets: targets, members: members)
    }
}

/// Asks a worker to stop a render; one that has ended by then is not affected.
struct WorkerStop: Sendable, Hashable {
    var id: UInt64

    init(id: UInt64) { self.id = id }

    var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.integer(WorkerProtocol.magic)
        writer.integer(id)
        return writer.bytes
    }

    init(_ bytes: [UInt8]) throws(MessageError) {
        var reader = MessageReader(bytes)
        guard try reader.integer(UInt32.self) == WorkerProtocol.magic else { throw MessageError("another protocol") }
        id = try reader.integer(UInt64.self)
        try reader.finish()
    }
}

enum WorkerReply: Sendable, Hashable {
    /// The worker has started and locked itself down.
    case ready(Ready)
    /// The pixels of a render are in memory, and its encoder is next.
    case encoding(id: UInt64)
    case finished(Finished)
    case failed(id: UInt64, RenderError.Code, message: String)

    struct Ready: Sendable, Hashable {
        /// `RenderRevision.rendering` of the worker's program; with a different one it would make different variants.
        var revision: String
        var protection: WorkerProtection
        /// Why the worker cannot render; empty if it can.
        var failure: String
        var libraries = RenderLibraries.unknown
    }

    struct Finished: Sendable, Hashable {
        var id: UInt64
        /// The length of the output in bytes.
        var count: Int
        var width: Int
        var height: Int
        var hasAlpha: Bool
        var isDamaged = false
        /// Milliseconds: decode, operations, encode, and CPU over all three.
        var decode: Double
        var operations: Double
        var encode: Double
        var cpu: Double
    }

    /// The longest message or revision text in bytes; senders truncate longer ones, and readers refuse them.
    static let textLimit = 4096
    /// The same for the libraries, of which there are about a hundred.
    static let librariesLimit = 16_384

    var bytes: [UInt8] {
        var writer = MessageWriter()
        writer.integer(WorkerProtocol.magic)
        switch self {
        case .ready(let ready):
            writer.integer(UInt8(1))
            writer.text(ready.revision)
            writer.integer(ready.protection.bits)
            writer.count(ready.protection.landlock)
            writer.text(String(ready.failure.prefix(Self.textLimit / 4)))
            var libraries = ready.libraries
            // Without their files, they cannot be kept for later processes.
            if libraries.text.utf8.count > Self.librariesLimit { libraries.files = [] }
            writer.text(libraries.text)
        case .finished(let finished):
            writer.integer(UInt8(2))
            writer.integer(finished.id)
            for value in [finished.count, finished.width, finished.height] { writer.count(value) }
            writer.flag(finished.hasAlpha)
            writer.flag(finished.isDamaged)
            for value in [finished.decode, finished.operations, finished.encode, finished.cpu] { writer.double(value) }
        case .failed(let id, let code, let message):
            writer.integer(UInt8(3))
            writer.integer(id)
            writer.text(code.rawValue)
            writer.text(String(message.prefix(Self.textLimit / 4)))
        case .encoding(let id):
            writer.integer(UInt8(4))
            writer.integer(id)
        }
        return writer.bytes
    }

    init(_ bytes: [UInt8]) throws(MessageError) {
        var reader = MessageReader(bytes)
        guard try reader.integer(UInt32.self) == WorkerProtocol.magic else { throw MessageError("another protocol") }
        switch try reader.integer(UInt8.self) {
        case 1:
            let revision = try reader.text("a revision", limit: Self.textLimit)
            let protection = WorkerProtection(
                bits: try reader.integer(UInt32.self), landlock: try reader.count("a version", 0...1000))
            let failure = try reader.text("a message", limit: Self.textLimit)
            guard let libraries = RenderLibraries(text: try reader.text("libraries", limit: Self.librariesLimit)) else {
                throw MessageError("libraries that cannot be read")
            }
            self = .ready(
                Ready(revision: revision, protection: protection, failure: failure, libraries: libraries))
        case 2:
            let id = try reader.integer(UInt64.self)
            let count = try reader.count("a length", WorkerProtocol.byteRange)
            let edges = 1...(1 << 24)
            self = .finished(
                Finished(
                    id: id, count: count, width: try reader.count("a width", edges),
                    height: try reader.count("a height", edges), hasAlpha: try reader.flag(),
                    isDamaged: try reader.flag(),
                    decode: try reader.amount("a time"), operations: try reader.amount("a time"),
                    encode: try reader.amount("a time"), cpu: try reader.amount("a time")))
        case 3:
            let id = try reader.integer(UInt64.self)
            let code = try reader.choice("error", RenderError.Code.self)
            self = .failed(id: id, code, message: try reader.text("a message", limit: Self.textLimit))
        case 4: self = .encoding(id: try reader.integer(UInt64.self))
        default: throw MessageError("an unknown kind")
        }
        try reader.finish()
    }
}
