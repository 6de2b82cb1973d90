import PipelineSupport
import CSandbox
import Glibc

/// Handles one render that has been sent to a worker. Waits for the reply, stops the render if its caller cancels or
/// its deadline passes, and kills a worker that does not stop. Everything that the worker sends is checked.
struct Exchange {
    let core: PoolCore
    let pending: PendingRender
    let files: RenderFiles
    let worker: WorkerProcess
    let wakeup: Wakeup
    /// The time at which the render was first sent to a worker, in monotonic seconds.
    let began: Double
    var phase = RenderPhase.pixels

    private var job: RenderJob { pending.job }

    /// Returns the rendered output. Returns nil if the worker ended before it read the request.
    mutating func outcome() throws(RenderError) -> RenderedOutput? {
        do throws(RenderError) {
            return try awaited()
        } catch {
            if error.code == .deadline {
                let isExpected = pending.work.decode + pending.work.rest > job.limits.seconds * 250
                core.quarantine(job, .deadline(phase, isExpected: isExpected), error.message)
                // The render cost at least this much. If the estimate was much lower, the reason is this particular
                // file. Other files cost less, so the estimates are then left unchanged.
                if isExpected || phase == .encode {
                    core.learn(pending, milliseconds: (SystemClock.monotonic.seconds - began) * 1000)
                }
            }
            throw error
        }
    }

    private mutating func awaited() throws(RenderError) -> RenderedOutput? {
        var cpu = worker.cpuSeconds
        var stopped: Stop?
        var end = began + job.limits.seconds
        var watch: LongRenderWatch? = LongRenderWatch(self)
        while true {
            let now = SystemClock.monotonic.seconds
            if stopped != nil {
                watch = nil
            } else if watch?.isOver(now, worker) == true {
                watch = nil
                if core.countAsLong(pending) { (stopped, end) = stop(PendingRender.yieldError) }
            }
            let left = end - now
            if left <= 0 {
                if let stopped {
                    let now = SystemClock.monotonic.seconds
                    end = stopped.grace.killTime(now: now, cpu: worker.cpuSeconds)
                    if end <= now { throw killed(stopped.reason) }
                } else if let unused = unusedSeconds(now, usedBefore: cpu) {
                    end = now + unused
                } else {
                    (stopped, end) = stop(.deadline(phase, job))
                }
                continue
            }
            var watched = [
                pollfd(fd: worker.requests, events: Int16(POLLIN), revents: 0),
                pollfd(fd: stopped == nil ? wakeup.file : -1, events: Int16(POLLIN), revents: 0),
            ]
            let pause = min(left, watch.map { $0.nextCheck - now } ?? left, 1e6)
            guard poll(&watched, 2, Int32((pause * 1000).rounded(.up))) > 0 else { continue }
            if watched[0].revents != 0 {
                let answer = worker.receiveReply()
                if case .reply(.encoding(pending.id)) = answer, phase == .pixels, pending.kind == .variant {
                    (phase, cpu) = (.encode, worker.cpuSeconds)
                    if stopped == nil { end = SystemClock.monotonic.seconds + job.limits.encodeSeconds }
                    continue
                }
                return try answered(answer, stopped?.reason)
            }
            if watched[1].revents != 0 {
                wakeup.clear()
                if pending.isCancelled { (stopped, end) = stop(PendingRender.cancelled) }
            }
        }
    }

    /// Returns the CPU seconds that a render in the background may still use in its phase, or nil if its time is over.
    /// Other processes may use all processors for a while, so the limits apply to the time for which the worker has run.
    private func unusedSeconds(_ now: Double, usedBefore: Double) -> Double? {
        let used = worker.cpuSeconds
        guard core.configuration.isBackground, used >= 0, usedBefore >= 0, now - began < Self.longestWait else {
            return nil
        }
        let left = (phase == .encode ? job.limits.encodeSeconds : job.limits.seconds) - (used - usedBefore)
        return left > 0 ? left : nil
    }

    /// The maximum wall time of a render in the background, in seconds.
    private static let longestWait = 600.0

    /// The time that a render may take before it is treated as long.
    private struct LongRenderWatch {
        /// The maximum wall time in seconds, for a worker that uses no CPU.
        private static let longest = 1.0

        private let began = SystemClock.monotonic.seconds
        private let cpu: Double
        private let allowed: Double
        /// The time of the next check of the worker, in monotonic seconds.
        private(set) var nextCheck: Double

        init(_ exchange: Exchange) {
            allowed = exchange.core.longRenderThreshold(exchange.pending)
            cpu = exchange.worker.cpuSeconds
            nextCheck = began + allowed
        }

        mutating func isOver(_ now: Double, _ worker: WorkerProcess) -> Bool {
            if now < nextCheck { return false }
            let left = min(allowed - (worker.cpuSeconds - cpu), began + Self.longest - now)
            nextCheck = now + max(0.005, left)
            return left <= 0
        }
    }

    private struct Stop {
        let reason: RenderError
        let grace: StopGrace
    }

    /// Asks the worker to stop, and returns the time at which to check the worker. A worker gets more time after a
    /// deadline than after a cancellation.
    private func stop(_ reason: RenderError) -> (Stop, Double) {
        let heeds = reason.code != .cancelled || pending.kind == .pixels || job.output.heedsStops
        let grace = StopGrace(now: SystemClock.monotonic.seconds, cpu: worker.cpuSeconds, heeds: heeds)
        worker.stop(pending.id)
        return (Stop(reason: reason, grace: grace), grace.firstLook)
    }

    private func killed(_ reason: RenderError) -> RenderError {
        _ = worker.end()
        core.count(\.killed)
        if reason.code == .deadline {
            core.configuration.warn("render worker \(worker.child) was killed: \(summary): \(reason.message)")
        }
        return reason
    }

    private func answered(
        _ answer: WorkerProcess.ReplyOutcome, _ stopped: RenderError?
    ) throws(RenderError) -> RenderedOutput? {
        switch answer {
        case .gone: throw crashed(isStopped: stopped != nil)
        case .unread: return nil
        case .malformed(let problem): throw malformedReply(problem)
        case .reply(.ready): throw malformedReply("a ready message during a render")
        case .reply(.encoding): throw malformedReply("an unexpected encoding message")
        case .reply(.failed(let id, let code, let message)):
            guard id == pending.id else { throw malformedReply("a reply to a different render") }
            throw failure(code, message, stopped)
        case .reply(.finished(let finished)):
            guard finished.id == pending.id else { throw malformedReply("a reply to a different render") }
            do throws(MessageError) {
                return try checked(finished)
            } catch {
                throw malformedReply(error.problem)
            }
        }
    }

    /// Translates a worker's error for the caller. There are codes that a worker is not allowed to report.
    private func failure(_ code: RenderError.Code, _ message: String, _ stopped: RenderError?) -> RenderError {
        switch code {
        case .cancelled, .deadline:
            return stopped ?? malformedReply("it reported a stop that was not requested")
        case .crashed, .workerProtocol, .workerKilled, .quarantined, .workerUnavailable:
            return malformedReply("an error code that a worker may not report")
        default:
            return stopped ?? RenderError(code, message.plain(limit: 1000))
        }
    }

    private func crashed(isStopped: Bool) -> RenderError {
        let ended = worker.end()
        core.count(\.crashed)
        let remarks = worker.remarks
        let work = phase == .pixels ? "decoded this original" : "encoded \(job.output.format.rawValue)"
        core.configuration.warn(
            "render worker \(worker.child) \(ended): \(summary)" + (remarks.map { ": " + $0 } ?? ""))
        // The worker's own limits never cause SIGKILL: allocations fail, and excessive CPU time causes SIGXCPU.
        if worker.signal == SIGKILL, !isStopped, worker.protection.limitsResources {
            return RenderError(
                .workerKilled,
                "the render worker \(ended) while it \(work), possibly by the "
                    + "kernel because memory ran out; check the kernel log, and reduce `render.workers` or `limits.workerMemory`"
            )
        }
        // The worker's text is untrusted, so it determines only this hint.
        let isMemory = remarks.map { $0.contains("alloc") || $0.contains("memory") } ?? false
        let hint =
            isMemory
            ? "; it may have needed more memory than limits.workerMemory, \(core.configuration.memory) bytes" : ""
        let error = RenderError(.crashed, "the render worker \(ended) while it \(work)\(hint)")
        core.quarantine(job, .crash(phase), error.message)
        return error
    }

    private func malformedReply(_ problem: String) -> RenderError {
        _ = worker.end()
        core.count(\.killed)
        let error = RenderError(
            .workerProtocol, "the render worker sent an invalid reply: \(problem.plain(limit: 200))")
        core.quarantine(job, .crash(phase), error.message)
        core.configuration.warn("render worker \(worker.child) was killed: \(summary): \(error.message)")
        return error
    }

    private var summary: String {
        "\(job.original.count) bytes of \(job.header.format.rawValue) with `\(job.recipe)`"
    }

    // MARK: The output

    /// Copies the output and checks that its length, format and size match the worker's reply.
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
            let format = try format(of: bytes, finished)
            // No phase can take longer than the complete render. Within that limit, the times that the worker reports
            // are used.
            let most = (SystemClock.monotonic.seconds - began) * 1000
            // The CPU time of a shared decode may have been spent during a different render.
            let longest = job.shared == nil ? most : max(most, job.limits.seconds * 1000)
            let cpu = min(finished.cpu, longest * 2)
            core.learn(pending, milliseconds: cpu)
            var variant =
                RenderedVariant(
                    bytes: bytes, format: format, width: finished.width, height: finished.height,
                    hasAlpha: finished.hasAlpha,
                    timings: Timings(
                        decode: .milliseconds(min(finished.decode, most)),
                        operations: .milliseconds(min(finished.operations, most)),
                        encode: .milliseconds(min(finished.encode, most))),
                    cpuTime: .milliseconds(cpu))
            variant.libraries = worker.libraries
            variant.isDamaged = finished.isDamaged
            variant.reencodingReason = finished.reencodingReason.isEmpty ? nil : finished.reencodingReason
            return .variant(variant)
        }
    }

    /// Returns a copy of the output, because the worker can still change its file.
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

    /// Returns the format of an output. Throws if the output has a format or size that was not announced.
    private func format(of bytes: [UInt8], _ finished: WorkerReply.Finished) throws(MessageError) -> ImageFormat {
        let format = job.output.format
        let header: ImageHeader
        do throws(RenderError) {
            header = try ImageHeader.probe(bytes)
        } catch {
            throw MessageError("an output that is not \(format.rawValue)")
        }
        let formats = [format] + (job.output.isSecondPass ? job.output.secondFormats : [])
        guard formats.contains(header.format), header.encodedWidth == finished.width,
            header.encodedHeight == finished.height
        else {
            throw MessageError(
                "\(header.format.rawValue) of \(header.sizeText) instead of the announced "
                    + "\(format.rawValue) of \(finished.width) × \(finished.height)")
        }
        return header.format
    }
}
