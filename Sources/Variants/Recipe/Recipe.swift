/// Load options, operations and an output, in recipe text's own order (design §2).
public struct Recipe: Sendable {
    public enum Frames: Sendable, Hashable { case first, all, count(Int) }
    public var orients = true
    public var keepsProfile = false
    public var frames = Frames.first
    public var steps: [any VariantOperation] = []
    public var output: OutputSpecification?
    public init() {}
}
/// The output step as written.
public struct OutputSpecification: Sendable, Hashable {
    public enum Kind: String, Sendable, CaseIterable { case jpeg, png, webp, avif, gif, jxl, auto, original }
    public var kind: Kind
    /// nil: the format's default.
    public var quality: Int?
    public var isLossless = false
    public var maxBytes: Int?
    public var isProgressive = false
    public var keep: KeptMetadata = []
    public init(_ kind: Kind) { self.kind = kind }
}
