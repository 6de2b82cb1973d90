/// Decides what a batch does next, without I/O. The runner performs the actions and reports their results.
///
/// - Items are numbered, named and finished in input order.
/// - At most one source is read at a time, and no source is read while `concurrency` sources are being rendered.
/// - No source is read while four times `concurrency` items have been read but not finished. This limits memory if an
///   early item is slow.
/// - After the schedule has ended, no further source is read. Items that were already read are still named and
///   finished.
struct BatchSchedule {
    enum Action {
        /// Read the next source, then call `pulled`.
        case pull
        /// Name the item's output, then call `written` after it has been written.
        case name(Int, BatchItem, BatchOutcome)
        /// Report the output.
        case finish(BatchOutput)
    }

    /// A render to start. `first` is the number of the first item of the same group.
    struct Render {
        var number: Int
        var first: Int
        var item: BatchItem
        var render: @Sendable () async -> BatchOutcome
    }

    let concurrency: Int
    private var hasEnded = false
    private var isPulling = false
    private var hasRendered = false
    private var failure: BatchFailure?
    /// The number of items of each group that are still being rendered, by the number of the group's first item.
    private var running: [Int: Int] = [:]
    private var waiting: [Int: (item: BatchItem, outcome: BatchOutcome)] = [:]
    private var written: [Int: BatchOutput] = [:]
    private var pulled = 0
    private var named = 0
    private var finished = 0

    init(concurrency: Int) { self.concurrency = max(1, concurrency) }

    /// The failure that prevented all renders and applies to every item, or nil if an item has been rendered.
    var blockingFailure: BatchFailure? { hasRendered ? nil : failure }

    /// Returns the next action, or nil if the runner must wait for a result.
    mutating func next() -> Action? {
        if !hasEnded, !isPulling, running.count < concurrency, pulled - finished < 4 * concurrency {
            isPulling = true
            return .pull
        }
        if let (item, outcome) = waiting.removeValue(forKey: named) {
            named += 1
            return .name(named - 1, item, outcome)
        }
        guard let output = written.removeValue(forKey: finished) else { return nil }
        finished += 1
        return .finish(output)
    }

    /// Stops reading sources.
    mutating func end() { (hasEnded, isPulling) = (true, false) }

    /// Adds the items of a source and returns the renders to start. `items` is empty at the end of the input.
    mutating func pulled(
        _ items: [BatchItem], _ renders: [@Sendable () async -> BatchOutcome]
    ) -> [Render] {
        isPulling = false
        if items.isEmpty { hasEnded = true }
        let first = pulled
        pulled += items.count
        var started: [Render] = []
        for (number, (item, render)) in zip(first..., zip(items, renders)) {
            if let failure = item.failure {
                waiting[number] = (item, .failure(failure))
            } else {
                running[first, default: 0] += 1
                started.append(Render(number: number, first: first, item: item, render: render))
            }
        }
        return started
    }

    mutating func rendered(_ render: Render, _ outcome: BatchOutcome) {
        switch outcome {
        case .variant(let variant): hasRendered = hasRendered || variant.item.outcome == .rendered
        case .failure(let cause) where !hasRendered && cause.meansNoWorker:
            failure = failure ?? cause
            hasEnded = true
        case .failure: break
        }
        waiting[render.number] = (render.item, outcome)
        running[render.first, default: 1] -= 1
        if running[render.first] == 0 { running[render.first] = nil }
    }

    mutating func written(_ number: Int, _ output: BatchOutput) { written[number] = output }
}
