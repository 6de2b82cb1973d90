/// What renders of one original that are made together have in common: they decode it once, as large as the largest of
/// them needs, and shrink it for all.
///
/// It decides the pixels of each of them, whatever becomes of the others: a render with the same job gives the same
/// bytes whether its companions were cancelled, failed, were stored already, or were rendered by another worker.
/// What is shared is pixels as decoded and shrunk; everything after that each recipe does for itself.
public struct SharedDecode: Sendable, Hashable {
    /// A shrunk picture.
    struct Target: Sendable, Hashable {
        var size: PixelSize
        /// Edge of the squares that are averaged first, in place of the decoder: a render of its own would have decoded so
        /// much smaller, and decoders average without going to linear light. Left out, high contrasts would come out
        /// lighter than they do alone. Their sums go on as they are: rounding up what lies between two bytes
        /// would make four pixels lighter by an eighth.
        var box: Int
    }

    /// The original: its digest.
    let name: String
    /// How much smaller than stored the decoder makes each edge.
    let shrink: Int
    /// Whether what is left at the right and the bottom, less than a square that the decoder averages, is left out.
    let crops: Bool
    /// What the picture is shrunk to, distinct, largest first.
    let targets: [Target]
    /// Renders that take part.
    let members: Int

    /// No message to a worker names more.
    static let targetLimit = 16
    /// Sums of larger squares do not fit 16 bits.
    static let boxLimit = 16
    /// How much recipes that take part may strengthen differences.
    static let gainLimit = 2.0
    /// Pixels of all targets together.
    private static let pixelLimit = 16_000_000
    /// Pixels of an original below which a render whose own decode averages more than four of them takes no part: so few
    /// are left to shrink then that its rounding shows, and such a decode is cheap.
    private static let averagedLimit = 4_000_000

    init(name: String, shrink: Int, crops: Bool, targets: [Target], members: Int) {
        self.name = name
        self.shrink = shrink
        self.crops = crops
        self.targets = targets
        self.members = members
    }

    /// What of `jobs`, all of one original, can be made from one decode: those that begin by shrinking one frame and
    /// then neither choose by looking at it (`trim`, `gravity=attention`) nor strengthen differences (`sharpen`,
    /// `contrast:3`), of the smallest sixteen sizes, which have 16,000,000 pixels together.
    ///
    /// - Parameter name: what no other original has: the digest of its bytes.
    /// - Returns: nil where fewer than two of them can.
    public init?(of jobs: [RenderJob], named name: String) {
        let plans = jobs.map(RenderPlan.init(alone:)).filter { $0.reduction != nil }
            .sorted { ($0.area, $0.shrink) < ($1.area, $1.shrink) }
        var taken: [RenderPlan] = []
        var pixels = 0
        for plan in plans {
            if let last = taken.last, (last.reduction, last.shrink) == (plan.reduction, plan.shrink) { continue }
            pixels += plan.area
            guard taken.count < Self.targetLimit, pixels <= Self.pixelLimit else { break }
            taken.append(plan)
        }
        let shrink = taken.map(\.shrink).min() ?? 1
        self.init(
            name: name, shrink: shrink, crops: jobs.first?.header.format == .jpeg,
            targets: taken.reversed().compactMap { Self.target($0, shrink) }, members: 0)
        let members = plans.count { target(of: $0) != nil }
        guard members > 1 else { return nil }
        self.init(name: name, shrink: shrink, crops: crops, targets: targets, members: members)
    }

    /// What a render that would be planned so takes from a decode of that shrink; nil where it needs one of its own.
    private static func target(_ plan: RenderPlan, _ shrink: Int) -> Target? {
        guard let size = plan.reduction, plan.shrink.isMultiple(of: shrink) else { return nil }
        let box = plan.shrink / shrink
        // Where there is alpha, decoders weigh colours by it.
        guard box == 1 || box <= boxLimit && !plan.hasAlpha else { return nil }
        guard box <= 2 || plan.size.width * plan.size.height >= averagedLimit else { return nil }
        return Target(size: size, box: box)
    }

    /// What a render takes that would be planned so alone; nil where it takes no part.
    func target(of plan: RenderPlan) -> Target? {
        guard let target = Self.target(plan, shrink), targets.contains(target) else { return nil }
        return target
    }

    /// Whether a render takes part; another one is made alone, whatever its job says.
    public func includes(_ job: RenderJob) -> Bool { target(of: RenderPlan(alone: job)) != nil }

    /// What a target is shrunk from, in a fraction of the time, where that makes little difference: the largest that nothing
    /// is averaged for, if it has two pixels along each edge for each of its own, is itself half as large as the decoded
    /// picture at most, and the target is not averaged for either. nil: the decoded rows.
    func source(of target: Target, decoded: PixelSize) -> Target? {
        func isHalf(_ size: PixelSize, _ larger: PixelSize) -> Bool {
            2 * size.width <= larger.width && 2 * size.height <= larger.height
        }
        guard target.box == 1, let largest = targets.first(where: { $0.box == 1 }), isHalf(target.size, largest.size),
            isHalf(largest.size, decoded)
        else { return nil }
        return largest
    }

    /// Whether a target is left to a decode of its own where much of the picture is cut (`CutSquares`): averages of four pixels
    /// come near enough.
    static func isOwn(_ target: Target) -> Bool { target.box > 2 }

    /// The part of the decoded picture that a decode of the target's own would show, in averages of its `box`: libvips
    /// cuts what a JPEG decoder would have averaged from less than a whole square; libwebp takes parts of pixels.
    func part(of image: Image, _ target: Target) -> (width: Double, height: Double) {
        func length(_ edge: Int) -> Double { crops ? Double(edge / target.box) : Double(edge) / Double(target.box) }
        return (length(image.width), length(image.height))
    }

    /// Whether all targets can be made from the decoded picture, which its header may have promised and not be.
    func fits(_ image: Image) -> Bool {
        targets.allSatisfy { target in
            let part = part(of: image, target)
            return Reduction.accepts(image, target.size) && Double(target.size.width) <= part.width
                && Double(target.size.height) <= part.height
        }
    }
}

extension RenderPlan {
    /// The plan of a render that shares nothing.
    init(alone job: RenderJob) {
        var alone = job
        alone.shared = nil
        self.init(alone)
    }

    fileprivate var area: Int { reduction.map { $0.width * $0.height } ?? 0 }
}
