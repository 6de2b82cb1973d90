import PipelineSupport
import CSandbox
import Glibc

/// A thread that keeps one worker busy: takes a render, hands it over, watches its deadline, checks the answer.
// @unchecked Sendable: `worker` is touched by the slot's own thread only.
final class WorkerSlot: @unchecked Sendable {
    private let index: Int
    private let core: PoolCore
    /// Counts up to wake the thread.
    private let wakeup: Int32
    private var worker: WorkerProcess?

    init?(index: Int, core: PoolCore) {
        self.index = index
        self.core = core
        wakeup = csandbox_wakeup()
        if wakeup < 0 { return nil }
    }

    /// Starts the thread, which releases the slot's resources when it ends; false if the system cannot create one.
    func start() -> Bool {
        let isStarted = startThread { self.run() }
        if !isStarted { close(wakeup) }
        return isStarted
    }

    /// Makes the thread look for work again; callable from any thread.
    func wake() {
        var one: UInt64 = 1
        // If the counter is full the write fails, but the thread wakes as well.
        _ = write(wakeup, &one, 8)
    }

    private func run() {
        while true {
            switch core.next(index, hasWorker: worker != nil) {
            case .render(let pending):
                do throws(RenderError) {
                    try core.admit(pending)
                    pending.finish(.success(try render(pending)))
                } catch {
                    if error == PendingRender.yields { core.requeue(pending) } else { pending.finish(.failure(error)) }
                }
                recycle()
            case .start(let isAwaited):
                do throws(RenderError) {
                    worker = try newWorker()
                } catch {
                    if !isAwaited { core.configuration.warn(error.message) }
                }
            case .wait(let milliseconds):
                wait(milliseconds)
            case .end:
                worker = nil
                let waiting = core.leave(index)
                close(wakeup)
                for continuation in waiting { continuation.resume() }
                return
            }
        }
    }

    /// Waits to be woken, or for the idle worker to end by itself.
    private func wait(_ milliseconds: Int32) {
        var watched = [
            pollfd(fd: wakeup, events: Int16(POLLIN), revents: 0),
            pollfd(fd: worker?.requests ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&watched, 2, milliseconds) > 0 else { return }
        if watched[0].revents != 0 { drainWakeup() }
        if watched[1].revents != 0 { discard() }
    }

    private func drainWakeup() {
        var count: UInt64 = 0
        _ = read(wakeup, &count, 8)
    }

    /// Drops a worker that ended, or sent something, while it was idle.
    private func discard() {
        if let worker { core.lost(worker) }
        worker = nil
    }

    private func newWorker() throws(RenderError) -> WorkerProcess {
        if let ready = core.ready(for: .nothing) { return ready }
        if let refusal = core.startRefusal() { throw refusal }
        return try core.startWorker()
    }

    /// Kills the worker if it still runs; the warm spare, if ready, replaces it at once.
    private func replace() {
        guard let old = worker else { return }
        old.kill()
        worker = core.ready(for: .killed(old))
        if worker == nil { _ = old.end() }
    }

    /// Hands over the stopping worker and takes the warm spare; false if that is not ready.
    private func handOver(_ stopping: StoppingRender) -> Bool {
        guard let ready = core.ready(for: .stopping(stopping)) else { return false }
        worker = ready
        return true
    }

    /// Replaces a worker that has reached its limit of renders or memory, or whose libraries have been updated since, as a
    /// later worker reported.
    private func recycle() {
        guard let worker else { return }
        guard worker.isSpent(core.configuration) || worker.libraries.versions != core.libraries?.versions else {
            return
        }
        replace()
        core.count(\.recycled)
    }

    // MARK: One render

    private func render(_ pending: PendingRender) throws(RenderError) -> RenderedOutput {
        let job = pending.job
        let request = try WorkerRequest(pending)
        var firstGiven: Double?
        // A render goes to a second worker if the first ended before it read the request, or something else killed it.
        for isLast in [false, true] {
            if pending.isCancelled { throw PendingRender.cancelled }
            if let worker, worker.hasLeft { discard() }
            let current: WorkerProcess
            if let worker { current = worker } else { current = try newWorker() }
            worker = current
            if let firstGiven, SystemClock.monotonic.seconds - firstGiven >= job.limits.seconds {
                throw .deadline(.pixels, job)
            }
            let began = firstGiven ?? SystemClock.monotonic.seconds
            firstGiven = began
            let files = try HandedFiles(job, to: current)
            if current.send(request, files.descriptors, limits: job.limits) {
                var exchange = Exchange(
                    core: core, pending: pending, id: request.id, files: files, worker: current, wakeup: wakeup,
                    replace: replace, handOver: handOver, began: began)
                do throws(RenderError) {
                    if let outcome = try exchange.outcome() { return outcome }
                } catch {
                    guard error.code == .workerKilled, !isLast else { throw error }
                    // The exchange has replaced the worker. Time that was lost to the kill does not count.
                    firstGiven = nil
                    continue
                }
            }
            discard()
        }
        throw RenderError(.workerKilled, "two render workers ended before they could begin")
    }
}

extension WorkerRequest {
    init(_ pending: PendingRender) throws(RenderError) {
        let job = pending.job
        let masks = job.masks.keys.sorted().map { Mask(name: $0, count: job.masks[$0]?.count ?? 0) }
        guard masks.count <= WorkerProtocol.maskLimit else {
            throw RenderError(.notApplicable, "a recipe uses at most \(WorkerProtocol.maskLimit) masks and overlays")
        }
        self.init(
            id: pending.id, kind: pending.kind, count: job.original.count, header: job.header,
            recipe: job.recipe.description, output: job.output, quality: job.quality, light: job.light,
            limits: job.limits, masks: masks, shared: job.shared)
    }
}

/// The files of one render: original, output, masks. The worker gets descriptors of them.
final class HandedFiles {
    private(set) var descriptors: [Int32] = []
    private let kept: WorkerFiles
    /// The files that end with the render; the worker reuses the others.
    private var owned: [Int32] = []
    private var isSettled = false
    var output: Int32 { descriptors[1] }

    init(_ job: RenderJob, to worker: WorkerProcess) throws(RenderError) {
        kept = worker.files
        if let file = Self.file(of: job.original) {
            own(file)
        } else {
            descriptors.append(try kept.copied(job.original, named: job.shared?.name))
        }
        descriptors.append(try kept.usedOutput())
        for name in job.masks.keys.sorted() {
            let mask = try MemoryFile.make("mask")
            own(mask)
            try MemoryFile.write(job.masks[name] ?? [], to: mask)
            // If it cannot be sealed, only the worker could change it, and no other process reads it.
            _ = csandbox_seal(mask)
        }
    }

    deinit { settle() }

    /// Closes what ends with the render; must be called after it, before another thread may use the worker.
    func settle() {
        if isSettled { return }
        isSettled = true
        for descriptor in owned { close(descriptor) }
        kept.settle()
    }

    private func own(_ descriptor: Int32) {
        descriptors.append(descriptor)
        owned.append(descriptor)
    }

    /// The file that holds the original, for reading only; nil if the original has to be copied.
    private static func file(of original: EncodedBytes) -> Int32? {
        guard let file = original.openedFile() else { return nil }
        var status = stat()
        if fstat(file, &status) == 0, status.st_size == original.count { return file }
        close(file)
        return nil
    }
}

/// Memory files (memfd_create).
enum MemoryFile {
    static func make(_ name: String) throws(RenderError) -> Int32 {
        let file = csandbox_memory_file(name)
        if file >= 0 { return file }
        throw RenderError(.workerUnavailable, "cannot create a memory file: \(String(cString: strerror(-file)))")
    }

    static func write(_ bytes: [UInt8], to file: Int32) throws(RenderError) {
        guard bytes.withUnsafeBytes({ FileIO.write($0, to: file, at: 0) }) else {
            throw RenderError(
                .workerUnavailable, "cannot allocate \(bytes.count) bytes: \(String(cString: strerror(errno)))")
        }
    }
}
