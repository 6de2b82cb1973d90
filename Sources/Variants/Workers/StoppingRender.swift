/// A render whose caller has left, and its worker, which was told to stop.
// @unchecked Sendable: like its worker, it belongs to one thread at a time. The slot that gave it away touches neither.
struct StoppingRender: @unchecked Sendable {
    let exchange: Exchange
    let stop: Exchange.Stop
    var worker: WorkerProcess { exchange.worker }

    /// Waits until the worker has stopped, or kills it; returns whether it may be used again.
    func settle() -> Bool {
        let core = exchange.core
        var exchange = exchange
        do throws(RenderError) {
            if try exchange.outcome(after: stop) == nil { core.lost(worker) }
        } catch {
            // The caller already knows that it was cancelled; a crash or kill has been counted.
        }
        exchange.files.settle()
        if worker.isEnding { return false }
        guard worker.isSpent(core.configuration) else { return true }
        core.count(\.recycled)
        return false
    }
}
