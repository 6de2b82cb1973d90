import PipelineSupport
import CSandbox
import Glibc

/// One render while a worker has it: waits for the answer, stops the render if its caller cancels or its deadline
/// passes, kills a worker that does not stop, and trusts nothing it has not checked.
struct Exchange {
    let core: PoolCore
    let pending: PendingRender
    /// Of the request; the render has another one once it waits again.
    let id: UInt64
    let files: HandedFiles
    let worker: WorkerProcess
    let wakeup: Int32
    /// Kills the worker if it still runs, and puts another one in its place.
    let replace: () -> Void
    /// Puts another worker in its place and leaves waiting for it to another thread; false if no other worker is ready.
    let handOver: (StoppingRender) -> Bool
    /// When the render was first given to a worker; monotonic seconds.
    let began: Double
    var phase = RenderPhase.pixels

    private var job: RenderJob { pending.job }

    /// What was rendered; nil if the worker ended before it read the request.
    ///
    /// - Parameter asked: the stop that was already sent to the worker.
    mutating func outcome(after asked: Stop? = nil) throws(RenderError) -> RenderedOutput? {
        do throws(RenderError) {
            return try awaited(asked)
        } catch {
            if error.code == .deadline {
                let isExpected = pending.work.decode + pending.work.rest > job.limits.seconds * 250
                core.quarantine(job, .deadline(phase, isExpected: isExpected), error.message)
                // It cost at least that. If much less was expected, the file is the reason, and other files cost less.
                if isExpected || phase == .encode {
                    core.learn(pending, milliseconds: (SystemClock.monotonic.seconds - began) * 1000)
                }
            }
            throw error
        }
    }

    private mutating func awaited(_ asked: Stop?) throws(RenderError) -> RenderedOutput? {
        var stopped = asked
        var end = asked?.grace.firstLook ?? began + job.limits.seconds
        var watch = asked == nil ? Patience(self) : nil
        while true {
            let now = SystemClock.monotonic.seconds
            if stopped != nil {
                watch = nil
            } else if watch?.isOver(now, worker) == true {
                watch = nil
                if core.outlived(pending) { (stopped, end) = try abandon(PendingRender.yields) }
            }
            let left = end - now
            if left <= 0 {
                if let stopped {
                    if stopped.isCancelled { try leave(after: stopped) }
                    let now = SystemClock.monotonic.seconds
                    end = stopped.grace.killTime(now: now, cpu: worker.cpuSeconds)
                    if end <= now { throw killed(stopped.reason) }
                } else {
                    let stop = stop(.deadline(phase, job))
                    (stopped, end) = (stop, stop.grace.firstLook)
                }
                continue
            }
            var watched = [
                pollfd(fd: worker.requests, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stopped == nil ? wakeup : -1, events: Int16(POLLIN), revents: 0),
            ]
            let pause = min(left, watch.map { $0.look - now } ?? left, 1e6)
            guard poll(&watched, 2, Int32((pause * 1000).rounded(.up))) > 0 else { continue }
            if watched[0].revents != 0 {
                let answer = worker.answer()
                if case .reply(.encoding(id)) = answer, phase == .pixels, pending.kind == .variant {
                    phase = .encode
                    if stopped == nil { end = SystemClock.monotonic.seconds + job.limits.encodeSeconds }
                    continue
                }
                return try answered(answer, stopped?.reason)
            }
            if watched[1].revents != 0 {
                var count: UInt64 = 0
                _ = read(wakeup, &count, 8)
                if pending.isCancelled { (stopped, end) = try abandon(PendingRender.cancelled) }
            }
        }
    }

    /// Asks the worker to stop, and throws `reason` if another worker takes its place at once. Otherwise returns the stop
    /// and the time at which to check the worker.
    private func abandon(_ reason: RenderError) throws(RenderError) -> (Stop, Double) {
        let stop = stop(reason)
        // A worker with a shared decode holds pictures for other renders, and usually stops at once.
        if job.shared == nil { try leave(after: stop) }
        return (stop, stop.grace.firstLook)
    }

    /// How long a render may take before it counts as long.
    private struct Patience {
        /// Seconds of wall time, for a worker that uses no CPU.
        private static let longest = 1.0

        private let began = SystemClock.monotonic.seconds
        private let cpu: Double
        private let allowed: Double
        /// When to check the worker; monotonic seconds.
        private(set) var look: Double

        init(_ exchange: Exchange) {
            allowed = exchange.core.patience(exchange.pending)
            cpu = exchange.worker.cpuSeconds
            look = began + allowed
        }

        mutating func isOver(_ now: Double, _ worker: WorkerProcess) -> Bool {
            if now < look { return false }
            let left = min(allowed - (worker.cpuSeconds - cpu), began + Self.longest - now)
            look = now + max(0.005, left)
            return left <= 0
        }
    }

    /// Leaves a worker that was told to stop to another thread, if another worker is ready.
    private func leave(after stop: Stop) throws(RenderError) {
        // Another thread must not touch the slot that the closures belong to.
        let rest = Exchange(
            core: core, pending: pending, id: id, files: files, worker: worker, wakeup: -1, replace: worker.kill,
            handOver: { _ in false }, began: began, phase: phase)
        if handOver(StoppingRender(exchange: rest, stop: stop)) { throw stop.reason }
    }

    struct Stop {
        let reason: RenderError
        let grace: StopGrace
        /// Whether the caller cancelled; a worker past its deadline is given longer to stop.
        var isCancelled: Bool { reason.code == .cancelled }
    }

    private func stop(_ reason: RenderError) -> Stop {
        let heeds = reason.code != .cancelled || pending.kind == .pixels || job.output.heedsStops
        let grace = StopGrace(now: SystemClock.monotonic.seconds, cpu: worker.cpuSeconds, heeds: heeds)
        worker.stop(id)
        return Stop(reason: reason, grace: grace)
    }

    private func killed(_ reason: RenderError) -> RenderError {
        replace()
        core.count(\.killed)
        if reason.code == .deadline {
            core.configuration.warn("render worker \(worker.child) was killed: \(summary): \(reason.message)")
        }
        return reason
    }

    private func answered(
        _ answer: WorkerProcess.Answer, _ stopped: RenderError?
    ) throws(RenderError) -> RenderedOutput? {
        switch answer {
        case .gone:
            // Workers are killed when the threads that started them end.
            if let stopped, core.isClosing { throw stopped }
            throw crashed(isStopped: stopped != nil)
        case .unread: return nil
        case .nonsense(let problem): throw nonsense(problem)
        case .reply(.ready): throw nonsense("a ready message in the middle of a render")
        case .reply(.encoding): throw nonsense("an unexpected encoding message")
        case .reply(.failed(let id, let code, let message)):
            guard id == self.id else { throw nonsense("an answer to another render") }
            throw failure(code, message, stopped)
        case .reply(.finished(let finished)):
            guard finished.id == id else { throw nonsense("an answer to another render") }
            do throws(MessageError) {
                return try checked(finished)
            } catch {
                throw nonsense(error.problem)
            }
        }
    }

    /// Translates a worker's error for the caller; some codes a worker may not report.
    private func failure(_ code: RenderError.Code, _ message: String, _ stopped: RenderError?) -> RenderError {
        switch code {
        case .cancelled, .deadline:
            return stopped ?? nonsense("it reported a stop that was not requested")
        case .crashed, .workerProtocol, .workerKilled, .quarantined, .workerUnavailable:
            return nonsense("an error code that a worker may not report")
        default:
            return stopped ?? RenderError(code, message.plain(limit: 1000))
        }
    }

    private func crashed(isStopped: Bool) -> RenderError {
        let ended = worker.end()
        replace()
        core.count(\.crashed)
        let remarks = worker.remarks
        let work = phase == .pixels ? "decoded this original" : "encoded \(job.output.format.rawValue)"
        core.configuration.warn(
            "render worker \(worker.child) \(ended): \(summary)" + (remarks.map { ": " + $0 } ?? ""))
        // The worker's own limits never end in SIGKILL: allocations fail, and excess CPU time is SIGXCPU.
        if worker.signal == SIGKILL, !isStopped, worker.protection.limitsResources {
            return RenderError(
                .workerKilled,
                "the render worker \(ended) while it \(work): not by the pipeline, so perhaps by the "
                    + "kernel because memory ran out; check its log, and use fewer or smaller workers")
        }
        // The worker's text is untrusted: it decides nothing but this hint.
        let isMemory = remarks.map { $0.contains("alloc") || $0.contains("memory") } ?? false
        let hint =
            isMemory
            ? "; it may have needed more memory than limits.workerMemory, \(core.configuration.memory) bytes" : ""
        let error = RenderError(.crashed, "the render worker \(ended) while it \(work)\(hint)")
        core.quarantine(job, .crash(phase), error.message)
        return error
    }

    private func nonsense(_ problem: String) -> RenderError {
        replace()
        core.count(\.killed)
        let error = RenderError(.workerProtocol, "the render worker's answer was invalid: \(problem.plain(limit: 200))")
        core.quarantine(job, .crash(phase), error.message)
        core.configuration.warn("render worker \(worker.child) was killed: \(summary): \(error.message)")
        return error
    }

    private var summary: String {
        "\(job.original.count) bytes of \(job.header.format.rawValue) with `\(job.recipe)`"
    }

    // MARK: The output

    /// Copies the output and checks that its length, format and size are what the worker says.
    private func checked(_ finished: WorkerReply.Finished) throws(MessageError) -> RenderedOutput {
        let edge = job.limits.outputEdge
        guard finished.width <= edge, finished.height <= edge else {
            throw MessageError("an output of \(finished.width) × \(finished.height) pixels")
        }
        guard finished.count > 0, finished.count <= job.limits.outputBytes else {
            throw MessageError("an output of \(finished.count) bytes")
        }
        switch pending.kind {
        case .pixels:
            guard finished.count == finished.width * finished.height * 4 else {
                throw MessageError("\(finished.count) bytes for \(finished.width) × \(finished.height) pixels")
            }
            let pixels = try bytes(finished.count)
            return .pixels(PixelBuffer(width: finished.width, height: finished.height, pixels: pixels))
        case .variant:
            let bytes = try bytes(finished.count)
            try check(bytes, finished)
            // No time can be longer than the whole render; within that, the worker's word is taken for it.
            let most = (SystemClock.monotonic.seconds - began) * 1000
            // A share of a shared decode may have been spent during another render.
            let longest = job.shared == nil ? most : max(most, job.limits.seconds * 1000)
            core.learn(pending, milliseconds: min(finished.cpu, longest * 2))
            var variant =
                RenderedVariant(
                    bytes: bytes, format: job.output.format, width: finished.width, height: finished.height,
                    hasAlpha: finished.hasAlpha,
                    milliseconds: Timings(
                        decode: min(finished.decode, most), operations: min(finished.operations, most),
                        encode: min(finished.encode, most)),
                    cpuMilliseconds: min(finished.cpu, longest * 2))
            variant.libraries = worker.libraries
            variant.isDamaged = finished.isDamaged
            return .variant(variant)
        }
    }

    /// Copies the output, because the worker can still change its file.
    private func bytes(_ count: Int) throws(MessageError) -> [UInt8] {
        var status = stat()
        guard fstat(files.output, &status) == 0, status.st_size == count else {
            throw MessageError("\(status.st_size) bytes instead of the announced \(count)")
        }
        guard let bytes = FileIO.bytes(count, of: files.output) else {
            throw MessageError("fewer than the announced \(count) bytes")
        }
        return bytes
    }

    private func check(_ bytes: [UInt8], _ finished: WorkerReply.Finished) throws(MessageError) {
        let format = job.output.format
        let header: ImageHeader
        do throws(RenderError) {
            header = try ImageHeader.probe(bytes)
        } catch {
            throw MessageError("an output that is not \(format.rawValue)")
        }
        guard header.format == format, header.width == finished.width, header.height == finished.height else {
            throw MessageError(
                "\(header.format.rawValue) of \(header.width) × \(header.height) pixels instead of the announced "
                    + "\(format.rawValue) of \(finished.width) × \(finished.height)")
        }
    }
}
