import CSandbox
import CVips
import Glibc
import PipelineSupport
import Synchronization

/// A thread that takes renders from a pool, one after another.
protocol RenderSlot: Sendable {
    /// Starts the thread. Returns false if the system cannot create a thread.
    func start() -> Bool
    /// Makes the thread look for work again. Can be called from any thread.
    func wake()
}

/// Wakes a thread that is polling `file` or will poll it.
final class Wakeup: Sendable {
    var file: Int32 { descriptor.load(ordering: .relaxed) }
    private let descriptor: Atomic<Int32>

    /// Creates the file. Returns nil if the process has too many open files.
    init?() {
        let file = csandbox_wakeup()
        descriptor = Atomic(file)
        if file < 0 { return nil }
    }

    deinit { end() }

    /// Closes the file. Must be called after the last poll. Later attempts to wake the thread have no effect.
    func end() {
        let file = descriptor.exchange(-1, ordering: .relaxed)
        if file >= 0 { close(file) }
    }

    func signal() {
        var one: UInt64 = 1
        // The write fails if the counter is full, but then the thread is woken anyway.
        _ = write(file, &one, 8)
    }

    func clear() {
        var count: UInt64 = 0
        _ = read(file, &count, 8)
    }
}

/// A thread that renders in this process.
final class ThreadSlot: RenderSlot {
    private let index: Int
    private let core: PoolCore
    private let deadlines: RenderDeadlines
    private let wakeup: Wakeup
    /// The pictures for the next render. Renders that share a decode run one after another.
    private let pictures = SharedPictures()

    init?(index: Int, core: PoolCore, _ deadlines: RenderDeadlines) {
        guard let wakeup = Wakeup() else { return nil }
        (self.index, self.core, self.deadlines, self.wakeup) = (index, core, deadlines, wakeup)
    }

    func start() -> Bool { startThread { self.run() } }
    func wake() { wakeup.signal() }

    private func run() {
        while true {
            switch core.next(index, hasWorker: true) {
            case .render(let pending): pending.finish(outcome(of: pending))
            case .start, .wait:
                pictures.keep(only: nil)
                var watched = pollfd(fd: wakeup.file, events: Int16(POLLIN), revents: 0)
                if poll(&watched, 1, -1) > 0 { wakeup.clear() }
            case .end:
                cvips_leave_thread()
                return core.removeSlot(index, wakeup)
            }
        }
    }

    private func outcome(of pending: PendingRender) -> PendingRender.Outcome {
        let job = pending.job
        let control = RenderControl(job.limits, job.output.format) { [deadlines] control in
            deadlines.add(control, seconds: job.limits.encodeSeconds)
        }
        pending.began(control)
        deadlines.add(control, seconds: job.limits.seconds)
        pictures.keep(only: job.shared)
        defer {
            deadlines.remove(control)
            control.finish()
        }
        do throws(RenderError) {
            try control.check()
            try VipsLibrary.load()
            let output = try job.original.bytes().withUnsafeBytes { bytes in
                Result { () throws(RenderError) in try self.output(of: pending, Render(job, bytes, control, pictures)) }
            }
            return .success(try output.get())
        } catch {
            // A failure after a stop is caused by the stop, whatever error libvips reports.
            return .failure(control.stopError ?? error)
        }
    }

    private func output(of pending: PendingRender, _ render: Render) throws(RenderError) -> RenderedOutput {
        guard pending.kind == .variant else { return .pixels(try render.pixels()) }
        let variant = try render.variant()
        core.learn(pending, milliseconds: variant.cpuTime.inSeconds * 1000)
        return .variant(variant)
    }
}
