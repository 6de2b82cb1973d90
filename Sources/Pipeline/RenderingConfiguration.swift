public import Variants

/// Configures how and where an `ImagePipeline` renders pictures: `PipelineConfiguration.rendering`.
///
/// ```swift
/// var configuration = PipelineConfiguration()
/// configuration.rendering.isolation = .workers(WorkerConfiguration())
/// configuration.rendering.limits.pixels = 50_000_000
/// configuration.rendering.presets = ["card": "thumbnail:300x200:fill,webp"]
/// configuration.rendering.masks = "/etc/my-app/masks"
/// ```
public struct RenderingConfiguration: Sendable {
    /// How resizing trades CPU time for fidelity. Defaults to `balanced`.
    public var quality = RenderQuality.balanced
    /// The kind of light that resizing averages when it mixes pixels, unless a recipe specifies it. Defaults to `auto`.
    public var light = RenderLight.auto
    /// How hard encoders try to save bytes, unless a recipe specifies it. Defaults to `quick`. The effort is not part
    /// of a variant's key, so a variant rendered by a process with `thorough` also answers requests of a process with
    /// `quick`, and vice versa.
    public var effort = RenderEffort.quick
    /// The default quality, effort and other output options by format, for recipes that do not specify them. None by
    /// default.
    public var outputs = OutputDefaults.none
    /// The second pass for variants that are requested often. Has no effect with `.inProcess`.
    public var secondPass = SecondPassConfiguration()
    /// The limits of a render.
    public var limits = RenderLimits()
    /// Where pictures are decoded. By default, they are decoded in this process, which then crashes or is compromised
    /// together with a decoder. `.workers` renders in separate processes. Use it for images from untrusted sources.
    public var isolation = RenderIsolation.inProcess
    /// The formats that `.inProcess` decodes. By default, they are all formats except
    /// `ImageFormat.decodedInWorkersOnly` (AVIF and HEIF).
    public var inProcessFormats = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    /// The number of concurrent renders in this process. If nil, the default, the number is one more than the number of
    /// cores, because renders are CPU-bound. Workers have their own setting.
    public var maxConcurrentRenders: Int?
    /// The maximum number of concurrent long renders. If nil, the default, the number is one less than the number of
    /// render threads or workers, but at least one, so that short renders need not wait.
    package var longRenders: Int?
    /// Named recipes: `@card` in a recipe refers to the preset `card`. None by default. `ImagePipeline.init` throws
    /// `invalidRecipe` if any preset does not parse.
    public var presets: [String: String] = [:]
    /// The folder that contains the files for `mask:NAME`. If nil, the default, there are no masks.
    public var masks: String?
    /// The folder that contains the files for `overlay:NAME`. If nil, the default, there are no overlays.
    public var overlays: String?
    /// The path of the libvips library, version 8.14 or newer, with or without GLib linked into it. If nil, the
    /// default, the library that the loader finds is used. A process that renders pictures itself (`isolation`) loads
    /// only one libvips, which is the library of its first pipeline.
    public var libvips: String?
    /// A renderer that replaces the one chosen by `isolation`.
    package var renderer: (any Rendering)?

    /// Creates a configuration with the defaults.
    public init() {}
}
