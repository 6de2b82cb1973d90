public import Variants

/// How and where pictures are rendered (`PipelineConfiguration.rendering`).
public struct RenderingConfiguration: Sendable {
    /// How resizing trades CPU time for fidelity; `balanced` by default.
    public var quality = RenderQuality.balanced
    /// The kind of light that resizing averages when it mixes pixels, unless a recipe specifies it; `auto` by default.
    public var light = RenderLight.auto
    /// How hard encoders try to save bytes, unless a recipe specifies it; `quick` by default. The effort is not part of
    /// a variant's key, so a variant rendered by a process with `thorough` also answers requests of a process with
    /// `quick`, and vice versa.
    public var effort = RenderEffort.quick
    /// The default quality, effort and other output options by format, for recipes that do not specify them. None by
    /// default.
    public var outputs = OutputDefaults.none
    /// The limits of a render.
    public var limits = RenderLimits()
    /// Where pictures are decoded. By default in this process, which then crashes or is compromised together with a
    /// decoder. `.workers` renders in separate processes; use it for images from untrusted sources.
    public var isolation = RenderIsolation.inProcess
    /// The formats that `.inProcess` decodes. By default all except `ImageFormat.decodedInWorkersOnly` (AVIF and HEIF).
    public var inProcessFormats = Set(ImageFormat.decodable).subtracting(ImageFormat.decodedInWorkersOnly)
    /// The number of concurrent renders in this process. nil, the default, for one more than the number of cores,
    /// because renders are CPU-bound. Workers have their own setting.
    public var maxConcurrentRenders: Int?
    /// The maximum number of concurrent long renders. nil, the default, for one less than the number of render threads
    /// or workers, but at least one, so that short renders need not wait.
    package var longRenders: Int?
    /// Named recipes: `@card` in a recipe refers to the preset `card`. None by default. `ImagePipeline.init` throws
    /// `invalidRecipe` if any preset does not parse.
    public var presets: [String: String] = [:]
    /// The folder that contains the files for `mask:NAME`; nil, the default, for no masks.
    public var masks: String?
    /// The folder that contains the files for `overlay:NAME`; nil, the default, for no overlays.
    public var overlays: String?
    /// The path of the libvips library, version 8.14 or newer, with or without GLib linked into it. nil, the default,
    /// uses the library that the loader finds. A process that renders pictures itself (`isolation`) loads only one
    /// libvips: the one of its first pipeline.
    public var libvips: String?
    /// A renderer that replaces the one chosen by `isolation`.
    package var renderer: (any Rendering)?

    public init() {}
}
