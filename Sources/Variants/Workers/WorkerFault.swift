import PipelineSupport
import CSandbox
import Glibc

/// Faults that imitate a defective decoder, for tests. An original that ends in `pipectl-fault:NAME` triggers a fault
/// in the worker that renders it, if `IMAGE_PIPELINE_WORKER_FAULTS` is set in the environment of `pipectl`.
///
/// Every build contains the faults, so that the released program can be tested. They are not a security risk: a client
/// that chooses originals can harm only the worker that renders them, and workers exist to contain such harm.
enum WorkerFault: String, CaseIterable {
    /// Reads from an invalid address.
    case segv
    case abort
    /// Exits without a reply.
    case exit
    /// Never replies and ignores stop requests.
    case hang
    /// Computes for half a second before it renders, and ignores stop requests in the meantime.
    case slow
    /// Like `segv` or `hang`, but in the encoder.
    case encodeSegv = "encode-segv"
    case encodeHang = "encode-hang"
    /// Allocates memory until no more is available.
    case memory
    /// Writes more bytes than any output may have.
    case flood
    /// Sends bytes that are not a message.
    case nonsense
    /// Sends a reply for a different render.
    case stranger
    /// Reports more bytes than were written.
    case count
    /// Reports a size that differs from the output.
    case size
    /// Writes an output that is not a picture.
    case garbage
    case open
    case connect
    case execute

    private static let marker = "pipectl-fault:"

    /// Returns the fault that is named at the end of an original.
    static func named(in bytes: UnsafeRawBufferPointer) -> WorkerFault? {
        let end = String(decoding: bytes.suffix(64), as: UTF8.self)
        return allCases.first { end.hasSuffix(marker + $0.rawValue) }
    }

    private var phase: RenderPhase { self == .encodeSegv || self == .encodeHang ? .encode : .pixels }

    /// Triggers the fault if it belongs to this phase.
    func happen(in phase: RenderPhase) throws(RenderError) {
        guard phase == self.phase else { return }
        switch self {
        case .segv, .encodeSegv: _ = UnsafePointer<UInt8>(bitPattern: 16)?.pointee == 0 ? Glibc.exit(3) : Glibc.exit(4)
        case .abort: Glibc.abort()
        case .exit: Glibc.exit(7)
        case .hang, .encodeHang: while true { usleep(1000) }
        case .slow:
            let end = SystemClock.threadCPU.seconds + 0.5
            while SystemClock.threadCPU.seconds < end {}
        case .memory:
            while let memory = malloc(64 << 20) { memset(memory, 1, 4096) }
            WorkerProgram.complain("failed to allocate \(64 << 20) bytes")
            Glibc.abort()
        case .nonsense:
            let bytes = [UInt8](repeating: 0xA5, count: 300)
            _ = csandbox_send(Int32(CSANDBOX_REQUESTS), bytes, bytes.count, nil, 0)
        case .open: try Self.report(csandbox_attempt_open("/etc/passwd"))
        case .connect: try Self.report(csandbox_attempt_socket())
        case .execute: try Self.report(csandbox_attempt_execute("/bin/true"))
        case .flood, .stranger, .count, .size, .garbage: break
        }
    }

    private static func report(_ status: Int32) throws(RenderError) {
        throw RenderError(.notApplicable, status == 0 ? "it was allowed" : "it was denied")
    }

    func corrupt(_ finished: inout WorkerReply.Finished, output: Int32) {
        switch self {
        case .stranger: finished.id &+= 1
        case .count: finished.count += 1
        case .size: finished.width += 1
        case .garbage:
            let zeros = [UInt8](repeating: 0, count: finished.count)
            _ = pwrite(output, zeros, zeros.count, 0)
        case .flood:
            let part = [UInt8](repeating: 1, count: 1 << 20)
            var at = 0
            while pwrite(output, part, part.count, off_t(at)) == part.count { at += part.count }
            finished.count = at
        default: break
        }
    }
}
