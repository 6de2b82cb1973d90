/// A decode that several renders of one original share. The original is decoded once, at the size that the largest
/// render needs, and then shrunk for each render.
///
/// The decode determines the input pixels of each render independently of the other renders. A render produces the same
/// bytes even if the other renders are cancelled, fail, or run in a different worker. The renders share the decoded and
/// shrunk pixels, and run all later steps of their recipes separately.
package struct SharedDecode: Sendable, Hashable {
    struct Target: Sendable, Hashable {
        var size: PixelSize
        /// The edge of the squares that are averaged first. In a separate decode, the decoder would shrink by this
        /// additional factor, and decoders average in gamma space. Without this averaging, high contrasts would be
        /// lighter than in a separate render. The sums are passed on unrounded, because rounding the mean of four
        /// pixels half up to a byte would make the picture lighter by an eighth on average.
        var box: Int
        /// The light for shrinking.
        var light: RenderLight
    }

    /// The digest of the original.
    var name: String
    /// The factor by which the decoder shrinks each edge.
    var shrink: Int
    /// The distinct sizes to which the picture is shrunk, largest first.
    var targets: [Target]
    /// The area of the stored picture that contains the parts of all renders, if each render begins with a `crop`. There
    /// are no targets in this case.
    var area: PixelRectangle?
    /// The number of participating renders.
    var members: Int

    /// The maximum number of targets in a message to a worker.
    static let targetLimit = 16
    /// The maximum value of `box`. The sums of larger squares would not fit in 16 bits.
    static let boxLimit = 16
    /// The maximum `differenceGain` of the recipes of participating renders.
    static let gainLimit = 2.0
    /// The maximum number of pixels of all targets together.
    private static let pixelLimit = 16_000_000
    /// The minimum number of pixels of an original for a `box` greater than 2. In smaller originals so few pixels
    /// remain to be shrunk that the rounding of a separate decode would be visible, and a separate decode is cheap.
    private static let averagedLimit = 4_000_000

    /// Returns the target of a render with this plan in a decode with this shrink factor. Returns nil if the render
    /// needs a separate decode.
    private static func target(_ plan: RenderPlan, _ shrink: Int) -> Target? {
        guard let size = plan.reduction, plan.shrink.isMultiple(of: shrink) else { return nil }
        let box = plan.shrink / shrink
        // Decoders weight colors by alpha, which these averages do not do.
        guard box == 1 || box <= boxLimit && !plan.hasAlpha else { return nil }
        guard box <= 2 || plan.size.width * plan.size.height >= averagedLimit else { return nil }
        return Target(size: size, box: box, light: plan.light)
    }
}

extension SharedDecode {
    /// Selects the renders of one original that can share a decode. These renders begin by shrinking a single frame.
    /// Their later steps neither depend on the content (`trim`, `gravity=attention`) nor amplify differences
    /// (`sharpen`, `contrast:3`). At most the sixteen smallest sizes take part, with at most 16,000,000 pixels in
    /// total.
    ///
    /// - Parameters:
    ///   - plans: the plans of the separate renders.
    ///   - name: the digest of the original's bytes.
    /// - Returns: nil if fewer than two renders can share a decode.
    init?(of plans: [RenderPlan], named name: String) {
        if plans.first?.tile != nil {
            self.init(ofTiles: plans, named: name)
            return
        }
        let plans = plans.filter { $0.reduction != nil }.sorted { ($0.area, $0.shrink) < ($1.area, $1.shrink) }
        var accepted: [RenderPlan] = []
        var pixels = 0
        for plan in plans {
            func isSame(_ other: RenderPlan) -> Bool {
                (other.reduction, other.shrink, other.light) == (plan.reduction, plan.shrink, plan.light)
            }
            if accepted.contains(where: isSame) { continue }
            pixels += plan.area
            guard accepted.count < Self.targetLimit, pixels <= Self.pixelLimit else { break }
            accepted.append(plan)
        }
        let shrink = accepted.map(\.shrink).min() ?? 1
        self.init(
            name: name, shrink: shrink, targets: accepted.reversed().compactMap { Self.target($0, shrink) }, members: 0)
        let members = plans.count { target(of: $0) != nil }
        guard members > 1 else { return nil }
        self.init(name: name, shrink: shrink, targets: targets, members: members)
    }

    /// Selects the renders that begin with a `crop` and decode at the size of the first render. The renders take part in
    /// order, as long as the area that contains their parts has at most 16,000,000 pixels. Each render produces
    /// the same bytes as a separate render.
    private init?(ofTiles plans: [RenderPlan], named name: String) {
        guard let first = plans.first, var area = first.tile else { return nil }
        guard area.width * area.height / (first.shrink * first.shrink) <= Self.pixelLimit else { return nil }
        for plan in plans where plan.shrink == first.shrink {
            guard let tile = plan.tile else { continue }
            let larger = area.union(tile)
            if larger.width * larger.height / (first.shrink * first.shrink) <= Self.pixelLimit { area = larger }
        }
        self.init(name: name, shrink: first.shrink, targets: [], area: area, members: 0)
        members = plans.count(where: includes)
        if members < 2 { return nil }
    }

    /// Returns the target of a render with this separate plan. Returns nil if the render does not take part.
    func target(of plan: RenderPlan) -> Target? {
        guard let target = Self.target(plan, shrink), targets.contains(target) else { return nil }
        return target
    }

    /// Whether the render with this plan takes part. Otherwise the render decodes alone, regardless of its job.
    func includes(_ plan: RenderPlan) -> Bool {
        guard let area else { return target(of: plan) != nil }
        return plan.shrink == shrink && plan.tile.map { area.union($0) == area } == true
    }

    /// Returns the larger target from which the given target can be shrunk in a fraction of the time and with little
    /// difference. Returns nil if the target must be shrunk from the decoded rows. The source is the largest target
    /// without averaging that has the same light, is at least twice as large along each edge, and is at most half as
    /// large as the decoded picture. The given target must not use averaging either.
    func source(of target: Target, decoded: PixelSize) -> Target? {
        func isHalf(_ size: PixelSize, _ larger: PixelSize) -> Bool {
            2 * size.width <= larger.width && 2 * size.height <= larger.height
        }
        guard target.box == 1, let largest = targets.first(where: { $0.box == 1 && $0.light == target.light }),
            isHalf(target.size, largest.size), isHalf(largest.size, decoded)
        else { return nil }
        return largest
    }

    /// Whether a target needs its own decode if much of the picture is clipped (`ClippingEstimate`). Averages of up to four
    /// pixels are close enough.
    static func isOwn(_ target: Target) -> Bool { target.box > 2 }

    /// Whether all targets can be made from the decoded picture. The size of the picture may differ from the header.
    func fits(_ image: Image) -> Bool {
        if area != nil { return Reduction.accepts(image, PixelSize(width: 1, height: 1)) }
        return targets.allSatisfy { target in
            Reduction.accepts(image, target.size) && target.size.width <= image.width / target.box
                && target.size.height <= image.height / target.box
        }
    }
}

/// The properties of a render that decide whether it can share a decode: the digest of the original and the plan of the
/// separate render.
struct ShareableDecode: Sendable {
    let digest: String
    let plan: RenderPlan
}

extension RenderJob {
    /// The properties for sharing, or nil if the original has no digest, the render needs a separate decode, or a
    /// shared decode has already been decided.
    var shareable: ShareableDecode? {
        // A shared decode does not know its page.
        guard let digest, shared == nil, recipe.page == 1 else { return nil }
        let plan = RenderPlan(self)
        return plan.reduction == nil && plan.tile == nil ? nil : ShareableDecode(digest: digest, plan: plan)
    }

    /// Returns the jobs with the decode that they would share if they waited together. All jobs must have the same
    /// original. Returns nil if fewer than two of them can share a decode.
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
    /// Creates the plan for a separate decode.
    init(alone job: RenderJob) {
        var alone = job
        alone.shared = nil
        self.init(alone)
    }

    fileprivate var area: Int { reduction.map { $0.width * $0.height } ?? 0 }
}
