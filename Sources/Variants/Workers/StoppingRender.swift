/// A render whose caller has left, and its worker, which was told to stop.
// @unchecked Sendable: like its worker, it belongs to one thread at a time. The slot that gave it away touches neither.
struct StoppingRender: @unchecked Sendable {
    let worker: WorkerProcess
    private let core: PoolCore
    private let pending: PendingRender
    private let files: HandedFiles
    private let began: Double
    private let phase: RenderPhase
    private let stop: Exchange.Stop

    init(
        _ core: PoolCore, _ pending: PendingRender, _ files: HandedFiles, _ worker: WorkerProcess, began: Double,
        phase: RenderPhase, stop: Exchange.Stop
    ) {
        self.core = core
        self.pending = pending
        self.files = files
        self.worker = worker
        self.began = began
        self.phase = phase
        self.stop = stop
    }

    /// Waits until the worker has stopped, or kills it; returns whether it may be used again.
    func settle() -> Bool {
        var exchange = Exchange(
            core, pending, files, worker, -1, began: began, phase: phase, replace: worker.kill, handOver: { _ in false }
        )
        do throws(RenderError) {
            if try exchange.outcome(after: stop) == nil { core.lost(worker) }
        } catch {
            // The caller already knows that it was cancelled; a crash or kill has been counted.
        }
        files.settle()
        if worker.isEnding { return false }
        guard worker.isSpent(core.configuration) else { return true }
        core.count(\.recycled)
        return false
    }
}
