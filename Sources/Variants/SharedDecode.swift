/// What several renders of one original have in common: they decode it once, as large as the largest of them needs, and
/// shrink it for all.
///
/// It determines the pixels of each of them, whatever happens to the others: a render gives the same bytes whether those
/// it shares with are then cancelled, fail, or are rendered by another worker. Only pixels as decoded and shrunk are
/// shared; each recipe does everything after that by itself.
package struct SharedDecode: Sendable, Hashable {
    struct Target: Sendable, Hashable {
        var size: PixelSize
        /// Edge of the squares that are averaged first, in place of the decoder: alone, the render would have decoded
        /// this much smaller, and decoders average in gamma space. Without this, high contrasts would come out lighter
        /// than they do alone. The sums are passed on unrounded: rounding each mean of four pixels half up to a byte
        /// would make them lighter by an eighth on average.
        var box: Int
        /// What shrinking adds up.
        var light: RenderLight
    }

    /// The digest of the original.
    let name: String
    /// How much smaller than stored the decoder makes each edge.
    let shrink: Int
    /// The sizes that the picture is shrunk to: distinct, largest first.
    let targets: [Target]
    /// The number of renders that take part.
    let members: Int

    /// The most targets that a message to a worker may name.
    static let targetLimit = 16
    /// The sums of larger squares would not fit in 16 bits.
    static let boxLimit = 16
    /// The most that the recipes of participating renders may amplify differences.
    static let gainLimit = 2.0
    /// The most pixels that all targets may have together.
    private static let pixelLimit = 16_000_000
    /// In an original with fewer pixels, a render whose own decode averages more than four of them takes no part: so
    /// few are left to shrink that this decode's rounding shows, and such a decode is cheap.
    private static let averagedLimit = 4_000_000

    /// What a render with this plan takes from a decode with this shrink; nil if it needs a decode of its own.
    private static func target(_ plan: RenderPlan, _ shrink: Int) -> Target? {
        guard let size = plan.reduction, plan.shrink.isMultiple(of: shrink) else { return nil }
        let box = plan.shrink / shrink
        // With alpha, decoders weight colours by it, which these averages do not.
        guard box == 1 || box <= boxLimit && !plan.hasAlpha else { return nil }
        guard box <= 2 || plan.size.width * plan.size.height >= averagedLimit else { return nil }
        return Target(size: size, box: box, light: plan.light)
    }
}

extension SharedDecode {
    /// Selects those renders of one original that can be made from one decode: they begin by shrinking one frame, and
    /// then neither choose by looking at it (`trim`, `gravity=attention`) nor amplify differences (`sharpen`,
    /// `contrast:3`). Only the sixteen smallest sizes take part, with at most 16,000,000 pixels together.
    ///
    /// - Parameters:
    ///   - plans: of the renders, each alone.
    ///   - name: identifies the original: the digest of its bytes.
    /// - Returns: nil if fewer than two of them can.
    init?(of plans: [RenderPlan], named name: String) {
        let plans = plans.filter { $0.reduction != nil }.sorted { ($0.area, $0.shrink) < ($1.area, $1.shrink) }
        var taken: [RenderPlan] = []
        var pixels = 0
        for plan in plans {
            func isSame(_ other: RenderPlan) -> Bool {
                (other.reduction, other.shrink, other.light) == (plan.reduction, plan.shrink, plan.light)
            }
            if taken.contains(where: isSame) { continue }
            pixels += plan.area
            guard taken.count < Self.targetLimit, pixels <= Self.pixelLimit else { break }
            taken.append(plan)
        }
        let shrink = taken.map(\.shrink).min() ?? 1
        self.init(
            name: name, shrink: shrink, targets: taken.reversed().compactMap { Self.target($0, shrink) }, members: 0)
        let members = plans.count { target(of: $0) != nil }
        guard members > 1 else { return nil }
        self.init(name: name, shrink: shrink, targets: targets, members: members)
    }

    /// What a render takes if this is its plan when rendered alone; nil if it takes no part.
    func target(of plan: RenderPlan) -> Target? {
        guard let target = Self.target(plan, shrink), targets.contains(target) else { return nil }
        return target
    }

    /// Whether the render with this plan takes part; if not, it is rendered alone, whatever its job says.
    func includes(_ plan: RenderPlan) -> Bool { target(of: plan) != nil }

    /// The larger target that a target can be shrunk from, in a fraction of the time and with little difference; nil to
    /// shrink it from the decoded rows. It is the largest target without averaging, if it has at least two pixels along
    /// each edge for each of the target's, is itself at most half as large as the decoded picture, and the target has
    /// the same light and no averaging either.
    func source(of target: Target, decoded: PixelSize) -> Target? {
        func isHalf(_ size: PixelSize, _ larger: PixelSize) -> Bool {
            2 * size.width <= larger.width && 2 * size.height <= larger.height
        }
        guard target.box == 1, let largest = targets.first(where: { $0.box == 1 && $0.light == target.light }),
            isHalf(target.size, largest.size), isHalf(largest.size, decoded)
        else { return nil }
        return largest
    }

    /// Whether a target needs its own decode if much of the picture is clipped (`CutSquares`); averages of up to four
    /// pixels come close enough.
    static func isOwn(_ target: Target) -> Bool { target.box > 2 }

    /// Whether all targets can be made from the decoded picture, which may differ from what its header promised.
    func fits(_ image: Image) -> Bool {
        targets.allSatisfy { target in
            Reduction.accepts(image, target.size) && target.size.width <= image.width / target.box
                && target.size.height <= image.height / target.box
        }
    }
}

/// What a render can share with others of its original: its plan when rendered alone.
struct ShareableDecode: Sendable {
    let digest: String
    let plan: RenderPlan
}

extension RenderJob {
    /// What it can share; nil if its original has no name, it needs a decode of its own, or its decode is decided.
    var shareable: ShareableDecode? {
        guard let digest, shared == nil else { return nil }
        let plan = RenderPlan(self)
        return plan.reduction == nil ? nil : ShareableDecode(digest: digest, plan: plan)
    }

    /// `jobs`, all of one original, with the decode that they share if they wait together; nil if fewer than two can.
    @_spi(Benchmarks) public static func sharing(_ jobs: [RenderJob], named name: String) -> [RenderJob]? {
        guard let shared = SharedDecode(of: jobs.map(RenderPlan.init(alone:)), named: name) else { return nil }
        return jobs.map { job in
            var job = job
            job.shared = shared
            return job
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
