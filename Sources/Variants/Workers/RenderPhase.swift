/// The two phases of a render. Each has its own deadline, and what a crash is blamed on depends on its phase.
enum RenderPhase: Hashable, Sendable {
    /// Opening, decoding and the steps, which libvips evaluates in one pass.
    case pixels
    /// Encoding: the finished pixels are in memory, and no decoder runs.
    case encode
}

extension RenderError {
    /// A phase took longer than its limit.
    static func deadline(_ phase: RenderPhase, _ job: RenderJob) -> RenderError {
        deadline(phase, job.limits, job.output.format)
    }

    static func deadline(_ phase: RenderPhase, _ limits: RenderLimits, _ format: ImageFormat) -> RenderError {
        switch phase {
        case .pixels:
            RenderError(.deadline, "decoding and the steps took longer than limits.seconds, \(limits.seconds) s")
        case .encode:
            RenderError(
                .deadline,
                "encoding \(format.rawValue) took longer than limits.encodeSeconds, \(limits.encodeSeconds) s; a smaller "
                    + "picture, a lower `effort=`, another output or one without `max=` takes less")
        }
    }
}
