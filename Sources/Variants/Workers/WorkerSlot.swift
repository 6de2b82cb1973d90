import PipelineSupport
import CSandbox
import Glibc

/// A thread that controls one worker. It takes a render, sends it to the worker, monitors its deadline, and checks the
/// reply.
// @unchecked Sendable: `worker` is accessed only by the slot's own thread.
final class WorkerSlot: RenderSlot, @unchecked Sendable {
    private let index: Int
    private let core: PoolCore
    private let wakeup: Wakeup
    private var worker: WorkerProcess?

    init?(index: Int, core: PoolCore) {
        guard let wakeup = Wakeup() else { return nil }
        (self.index, self.core, self.wakeup) = (index, core, wakeup)
    }

    func start() -> Bool { startThread { self.run() } }
    func wake() { wakeup.signal() }

    private func run() {
        while true {
            switch core.next(index, hasWorker: worker != nil) {
            case .render(let pending):
                do throws(RenderError) {
                    try core.admit(pending)
                    pending.finish(.success(try render(pending)))
                } catch {
                    if error == PendingRender.yieldError {
                        core.requeue(pending)
                    } else {
                        pending.finish(.failure(error))
                    }
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
                return core.removeSlot(index, wakeup)
            }
        }
    }

    /// Waits for a wake-up, or for the idle worker to end.
    private func wait(_ milliseconds: Int32) {
        var watched = [
            pollfd(fd: wakeup.file, events: Int16(POLLIN), revents: 0),
            pollfd(fd: worker?.requests ?? -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&watched, 2, milliseconds) > 0 else { return }
        if watched[0].revents != 0 { wakeup.clear() }
        if watched[1].revents != 0 { discard() }
    }

    /// Discards a worker that exited or sent data while it was idle.
    private func discard() {
        if let worker { core.lost(worker) }
        worker = nil
    }

    private func newWorker() throws(RenderError) -> WorkerProcess {
        if let refusal = core.startRefusal() { throw refusal }
        return try core.startWorker()
    }

    /// Discards a worker that was killed. Terminates a worker that has reached its limit of renders or memory, or whose
    /// libraries differ from those of the worker that started last.
    private func recycle() {
        guard let worker else { return }
        if worker.hasEnded { return self.worker = nil }
        guard worker.isSpent(core.configuration) || worker.libraries != core.libraries else { return }
        _ = worker.end()
        self.worker = nil
        core.count(\.recycled)
    }

    // MARK: One render

    private func render(_ pending: PendingRender) throws(RenderError) -> RenderedOutput {
        let job = pending.job
        let request = try WorkerRequest(pending)
        var firstGiven: Double?
        // Send the render to a second worker if the first one ended before it read the request, or was killed from
        // outside.
        for isLast in [false, true] {
            if pending.isCancelled { throw PendingRender.cancelled }
            if worker?.hasEnded == true { worker = nil }
            if let worker, worker.isDefunct { discard() }
            let current: WorkerProcess
            if let worker { current = worker } else { current = try newWorker() }
            worker = current
            if let firstGiven, SystemClock.monotonic.seconds - firstGiven >= job.limits.seconds {
                throw .deadline(.pixels, job)
            }
            let began = firstGiven ?? SystemClock.monotonic.seconds
            firstGiven = began
            let files = try RenderFiles(job, to: current)
            if current.send(request, files.descriptors, limits: job.limits) {
                var exchange = Exchange(
                    core: core, pending: pending, files: files, worker: current, wakeup: wakeup, began: began)
                do throws(RenderError) {
                    if let outcome = try exchange.outcome() { return outcome }
                } catch {
                    guard error.code == .workerKilled, !isLast else { throw error }
                    // Do not count the time that was lost because of the kill.
                    firstGiven = nil
                    continue
                }
            }
            discard()
        }
        throw RenderError(.workerKilled, "two render workers exited before the render could begin")
    }
}

extension WorkerRequest {
    init(_ pending: PendingRender) throws(RenderError) {
        let job = pending.job
        let masks = job.masks.keys.sorted().map { Mask(name: $0, count: job.masks[$0]?.count ?? 0) }
        guard masks.count <= WorkerProtocol.maskLimit else {
            throw RenderError(
                .notApplicable, "a recipe can use at most \(WorkerProtocol.maskLimit) masks and overlays in total")
        }
        self.init(
            id: pending.id, kind: pending.kind, count: job.original.count, header: job.header,
            recipe: job.recipe.description, output: job.output, quality: job.quality, light: job.light,
            limits: job.limits, masks: masks, shared: job.shared)
    }
}

/// The files of one render: the original, the output and the masks. The worker receives descriptors of these files.
final class RenderFiles {
    private(set) var descriptors: [Int32] = []
    private let kept: WorkerFiles
    /// The files that are closed after the render. The worker reuses the other files.
    private var owned: [Int32] = []
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
            // If sealing fails, only the worker could change the file, and no other process reads it.
            _ = csandbox_seal(mask)
        }
    }

    deinit {
        for descriptor in owned { close(descriptor) }
        kept.discardLargeFiles()
    }

    private func own(_ descriptor: Int32) {
        descriptors.append(descriptor)
        owned.append(descriptor)
    }

    /// Returns a read-only descriptor of the file that contains the original. Returns nil if the original must be
    /// copied.
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
