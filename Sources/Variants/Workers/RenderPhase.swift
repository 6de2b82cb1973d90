/// The two phases of a render. Each phase has its own deadline, and the phase of a crash determines what is
/// quarantined.
enum RenderPhase: Hashable, Sendable {
    /// Opening, decoding and the steps, which libvips evaluates in a single pass.
    case pixels
    /// Encoding. The finished pixels are in memory, and no decoder is running.
    case encode
}

extension RenderError {
    /// Returns the error of a phase that exceeded its limit.
    static func deadline(_ phase: RenderPhase, _ job: RenderJob) -> RenderError {
        deadline(phase, job.limits, job.output.format)
    }

    static func deadline(_ phase: RenderPhase, _ limits: RenderLimits, _ format: ImageFormat) -> RenderError {
        switch phase {
        case .pixels:
            RenderError(
                .deadline,
                "decoding and the steps took longer than \(limits.seconds) s (limits.seconds); use a smaller picture or fewer steps, or raise the limit"
            )
        case .encode:
            RenderError(
                .deadline,
                "encoding \(format.rawValue) took longer than \(limits.encodeSeconds) s (limits.encodeSeconds); use a smaller "
                    + "size, a lower `effort=`, a different output or no `max=` and `score=`")
        }
    }
}
