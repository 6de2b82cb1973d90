import PipelineSupport
import Synchronization

/// Keeps the shrunk pictures of the last shared decode for the participating renders, which run one after another.
final class SharedPictures: Sendable {
    private struct State {
        var shared: SharedDecode?
        var pictures: [SharedDecode.Target: PixelStorage] = [:]
        /// Whether much of the decoded picture is clipped.
        var isCut = false
        /// The number of participating renders that have not run yet.
        var left = 0
        /// The part of the decode that each participating render accounts for, in CPU seconds.
        var part = 0.0
        /// The CPU seconds to add to the current render: its part of the decode or, if it performed the decode itself,
        /// the negative sum of the other renders' parts.
        var balance = 0.0
        var decodes = 0
    }
    private let state = Mutex(State())

    var decodes: Int { state.withLock { $0.decodes } }
    var isEmpty: Bool { state.withLock { $0.pictures.isEmpty } }

    /// Discards pictures that do not belong to `shared`.
    func keep(only shared: SharedDecode?) {
        state.withLock { if $0.shared != shared { $0 = State(decodes: $0.decodes) } }
    }

    /// Returns the balance of the last render and resets it.
    func takeBalance() -> Double {
        state.withLock { state in
            defer { state.balance = 0 }
            return state.balance
        }
    }

    /// Shrinks the decoded `image` to `target`, which is one of the targets of `shared`. Returns nil if so much of the
    /// picture is clipped that this target needs a separate decode.
    func reduced(
        _ image: Image, _ extent: Reduction.Extent?, to target: SharedDecode.Target, _ shared: SharedDecode,
        isDrawn: Bool?, _ control: RenderControl
    ) throws(RenderError) -> Image? {
        keep(only: shared)
        if isEmpty {
            try decode(image, extent, shared, isDrawn: isDrawn, control)
        } else {
            state.withLock { $0.balance = $0.part }
        }
        let (pixels, isCut) = take(target)
        if isCut, SharedDecode.isOwn(target) { return nil }
        guard let pixels else {
            throw RenderError(
                .undecodable,
                "\(target.size.width) × \(target.size.height) pixels are not among the sizes of the shared decode")
        }
        return try Reduction.picture(pixels, target.size, like: image)
    }

    /// Returns the area of the decoded `picture` that contains the parts of all participating renders.
    func area(
        _ area: PixelRectangle, of picture: Picture, _ shared: SharedDecode, _ control: RenderControl
    ) throws(RenderError) -> Image {
        keep(only: shared)
        var part = picture
        try part.select(area, shrink: shared.shrink)
        let size = PixelSize(width: part.image.width, height: part.image.height)
        let target = SharedDecode.Target(size: size, box: 1, light: .auto)
        if isEmpty {
            let started = SystemClock.threadCPU.seconds
            keep([target: try part.image.computed(control)], of: shared, since: started)
        } else {
            state.withLock { $0.balance = $0.part }
        }
        guard let pixels = take(target).pixels else {
            throw RenderError(.undecodable, "the shared decode has a different size than the header declares")
        }
        return try Reduction.picture(pixels, size, like: part.image)
    }

    private func take(_ target: SharedDecode.Target) -> (pixels: PixelStorage?, isCut: Bool) {
        state.withLock { state in
            state.left -= 1
            // The balance is still needed after the pictures have been discarded.
            defer { if state.left <= 0 { (state.shared, state.pictures) = (nil, [:]) } }
            return (state.pictures[target], state.isCut)
        }
    }

    private func keep(
        _ pictures: [SharedDecode.Target: PixelStorage], of shared: SharedDecode, isCut: Bool = false,
        since started: Double
    ) {
        let part = (SystemClock.threadCPU.seconds - started) / Double(shared.members)
        state.withLock { state in
            state.shared = shared
            state.pictures = pictures
            state.isCut = isCut
            state.left = shared.members
            state.part = part
            state.balance = -part * Double(shared.members - 1)
            state.decodes += 1
        }
    }

    private func decode(
        _ image: Image, _ extent: Reduction.Extent?, _ shared: SharedDecode, isDrawn: Bool?, _ control: RenderControl
    ) throws(RenderError) {
        let started = SystemClock.threadCPU.seconds
        let decoded = PixelSize(width: image.width, height: image.height)
        let direct = shared.targets.filter { shared.source(of: $0, decoded: decoded) == nil }
        let lights = direct.map { $0.light.linearShares(isDrawn: isDrawn) }
        let parts = zip(direct, lights).flatMap { target, lights in
            lights.map { Reduction.Part(image, extent, box: target.box, to: target.size, linear: $0) }
        }
        var (squares, rows) = (ClippingEstimate(), DrawingDetector())
        let looks = shared.targets.contains(where: SharedDecode.isOwn)
        let bands = image.bands
        let made = try Reduction.pixels(of: image, parts, control) { strip in
            if looks { squares.examine(at: strip, bands: bands) }
            if isDrawn == nil { rows.examine(at: strip, bands: bands) }
        }
        var pictures: [SharedDecode.Target: PixelStorage] = [:]
        var at = 0
        for (target, lights) in zip(direct, lights) {
            pictures[target] = made[at + rows.index(of: lights)]
            at += lights.count
        }
        for target in shared.targets {
            guard let source = shared.source(of: target, decoded: decoded), let larger = pictures[source] else {
                continue
            }
            let picture = try Reduction.picture(larger, source.size, like: image)
            let linear = target.light.linearShares(isDrawn: isDrawn ?? rows.isCalm)[0]
            let part = Reduction.Part(picture, to: target.size, linear: linear)
            pictures[target] = try Reduction.pixels(of: picture, [part], control)[0]
        }
        keep(pictures, of: shared, isCut: squares.isMuch, since: started)
    }
}

/// A render's access to the shared pictures.
struct SharedReduction: Sendable {
    let shared: SharedDecode
    let target: SharedDecode.Target
    let pictures: SharedPictures
    let isDrawn: Bool?
    /// Opens the original for a separate decode.
    let openAlone: @Sendable () throws(RenderError) -> (image: Image, extent: Reduction.Extent?)

    /// Shrinks the decoded `image` to the target.
    func reduced(
        _ image: Image, _ extent: Reduction.Extent?, _ control: RenderControl
    ) throws(RenderError) -> Image {
        let reduced = try pictures.reduced(image, extent, to: target, shared, isDrawn: isDrawn, control)
        if let reduced { return reduced }
        let alone = try openAlone()
        return try Reduction.resize(
            alone.image, alone.extent, to: target.size, lights: target.light.linearShares(isDrawn: isDrawn), control)
    }
}
