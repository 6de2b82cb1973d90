import PipelineSupport
import CSandbox
import CVips
import Glibc
import Synchronization

/// Lets a program serve as its own render worker: a sandboxed process that renders for another process and does nothing
/// else. Call `runIfAsked()` first in `main`, before the program has a second thread.
///
/// ```swift
/// RenderWorker.runIfAsked()  // Does not return in a worker.
/// var workers = WorkerConfiguration()
/// workers.executable = "/proc/self/exe"
/// var configuration = PipelineConfiguration()
/// configuration.rendering.isolation = .workers(workers)
/// ```
///
/// `WorkerPool` starts the program again with `render-worker` as its first argument. `pipectl` supports this role.
public enum RenderWorker {
    package static let argument = "render-worker"
    /// The advice for an application that does not become a worker.
    static let hint = "call RenderWorker.runIfAsked() first in main"

    /// Becomes a worker and never returns if the program was started as a worker. Otherwise returns immediately.
    ///
    /// `render-worker --check` applies the sandbox to the process, attempts forbidden operations, and prints the
    /// outcome of each attempt.
    public static func runIfAsked() {
        let words = CommandLine.arguments
        guard words.count > 1, words[1] == argument else { return }
        if words.count > 2, words[2] == "--check" {
            exit(WorkerCheck.run(executes: words.count > 3 && words[3] == "execute"))
        }
        exit(WorkerProgram.run(memory: words.count > 2 ? UInt64(words[2]) : nil))
    }
}

/// The worker's side: receives requests, renders and replies on the main thread. A second thread listens for stop
/// requests.
enum WorkerProgram {
    /// The default memory limit in bytes.
    private static let defaultMemory: UInt64 = 1 << 30

    static func run(memory: UInt64?) -> Int32 {
        guard isStartedByParent() else {
            complain("\(RenderWorker.argument) is for internal use and cannot be run manually")
            return 2
        }
        // A terminal's ^C and a service manager's stop signal are meant for the front process, which lets renders
        // finish and then stops its workers.
        for number in [SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ] { signal(number, SIG_IGN) }
        var failure = ""
        if let problem = cvips_load() {
            failure = String(cString: problem)
        } else {
            // If these modules are missing, AVIF and JPEG XL are rejected like any format that is not built in.
            if !VipsLibrary.has("heifload_buffer") { _ = cvips_load_module("heif") }
            if !VipsLibrary.has("jxlsave_target") || !VipsLibrary.has("jxlload_buffer") { _ = cvips_load_module("jxl") }
        }
        XMLReader.load()
        if getenv(WorkerConfiguration.backgroundVariable) != nil { runOnlyIfIdle() }
        // This reads files and loads plug-ins, so it must come before the sandbox is applied.
        let libraries = failure.isEmpty ? RenderLibraries.loaded : .unknown
        let fonts = getenv(WorkerConfiguration.fontsVariable) != nil ? csandbox_open_fonts() : 0
        let protection = lock(memory: memory ?? defaultMemory, fonts: fonts)
        let ready = WorkerReply.Ready(
            revision: String(RenderRevision.rendering), protection: protection, failure: failure, libraries: libraries)
        guard send(.ready(ready)), failure.isEmpty else { return 1 }
        return WorkerLoop(hasFaults: getenv(WorkerConfiguration.faultsVariable) != nil).run()
    }

    /// Leaves the processors to other processes. libvips has already started threads. New threads inherit the policy.
    private static func runOnlyIfIdle() {
        // Swift does not import `SCHED_IDLE` (sched(7)).
        let idle: Int32 = 5
        forEachName(in: "/proc/self/task") { name in
            guard let thread = pid_t(String(decoding: name, as: UTF8.self)) else { return true }
            var parameters = sched_param()
            if sched_setscheduler(thread, idle, &parameters) != 0 {
                setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(thread), 19)
            }
            return true
        }
    }

    static func lock(memory: UInt64, fonts: Int = 0) -> WorkerProtection {
        var locks = CSandboxLocks(memory: memory, file_bytes: 512 << 20, fonts: UInt64(fonts))
        var report = CSandboxReport()
        csandbox_lock(&locks, &report)
        return WorkerProtection(report)
    }

    /// Whether descriptor 3 is a socket that was created by the parent of this process, under the same user.
    private static func isStartedByParent() -> Bool {
        var process = pid_t()
        var user = uid_t()
        return csandbox_peer(Int32(CSANDBOX_REQUESTS), &process, &user) == 0 && process == getppid() && user == getuid()
    }

    static func send(_ reply: WorkerReply) -> Bool {
        let bytes = reply.bytes
        return csandbox_send(Int32(CSANDBOX_REQUESTS), bytes, bytes.count, nil, 0) == 0
    }

    static func complain(_ text: String) {
        let bytes = Array((text + "\n").utf8)
        _ = write(STDERR_FILENO, bytes, bytes.count)
    }
}

private final class CurrentRender: Sendable {
    private struct State {
        var id: UInt64 = 0
        var control: RenderControl?
        /// The ID of the last render that should stop. That render may not have begun yet.
        var stopped: UInt64 = 0
    }
    private let state = Mutex(State())

    func begin(_ id: UInt64, _ control: RenderControl) {
        let isStopped = state.withLock { state in
            state.id = id
            state.control = control
            return state.stopped == id
        }
        if isStopped { control.stop(.cancelled) }
    }

    func end() { state.withLock { $0.control = nil } }

    func stop(_ id: UInt64) {
        let control = state.withLock { state in
            state.stopped = id
            return state.id == id ? state.control : nil
        }
        control?.stop(.cancelled)
    }

    /// Listens for stop requests until the front process closes its end.
    func listen() {
        var buffer = [UInt8](repeating: 0, count: 64)
        while true {
            let count = csandbox_receive(Int32(CSANDBOX_STOPS), &buffer, buffer.count, nil, 0, nil)
            guard count > 0 else { return }
            if let stop = try? WorkerStop(Array(buffer[..<count])) { self.stop(stop.id) }
        }
    }
}

/// Handles requests one after another, until the front process closes its end.
private final class WorkerLoop {
    private let hasFaults: Bool
    private let current = CurrentRender()
    private let original = MappedOriginal()
    /// The pictures for the next render, if it arrives soon. Renders that share a decode run one after another.
    private let pictures = SharedPictures()
    /// The last recipe in parsed form. Consecutive renders mostly use the same recipe.
    private var lastRecipe: (text: String, recipe: Recipe)?

    init(hasFaults: Bool) { self.hasFaults = hasFaults }

    func run() -> Int32 {
        guard startThread({ [current] in current.listen() }) else {
            WorkerProgram.complain("cannot create a thread: \(errno)")
            return 1
        }
        var buffer = [UInt8](repeating: 0, count: WorkerProtocol.messageLimit)
        var descriptors = [Int32](repeating: -1, count: WorkerProtocol.maskLimit + 2)
        while true {
            if !pictures.isEmpty, !Self.isAsked(within: 1000) { pictures.keep(only: nil) }
            // Wait here instead of in the receive call. A receive call that is interrupted by a kill may still consume
            // a request, and the front process would then conclude that the render crashed its worker.
            _ = Self.isAsked(within: -1)
            var held = 0
            let count = csandbox_receive(
                Int32(CSANDBOX_REQUESTS), &buffer, buffer.count, &descriptors, descriptors.count, &held)
            guard count > 0 else { return count == 0 ? 0 : 1 }
            let request: WorkerRequest
            do throws(MessageError) {
                request = try WorkerRequest(Array(buffer[..<count]))
            } catch {
                WorkerProgram.complain("an invalid request: \(error.problem)")
                return 1
            }
            let reply = answer(request, Array(descriptors[..<held]))
            for descriptor in descriptors[..<held] { close(descriptor) }
            guard WorkerProgram.send(reply) else { return 1 }
        }
    }

    /// Waits for a request, or until the front process closes its end. Returns false after this many milliseconds. -1
    /// means no timeout.
    private static func isAsked(within milliseconds: Int32) -> Bool {
        var requests = pollfd(fd: Int32(CSANDBOX_REQUESTS), events: Int16(POLLIN), revents: 0)
        return poll(&requests, 1, milliseconds) != 0
    }

    private func answer(_ request: WorkerRequest, _ descriptors: [Int32]) -> WorkerReply {
        do throws(RenderError) {
            return .finished(try render(request, descriptors))
        } catch {
            return .failed(id: request.id, error.code, message: error.message)
        }
    }

    private func render(
        _ request: WorkerRequest, _ descriptors: [Int32]
    ) throws(RenderError) -> WorkerReply.Finished {
        guard descriptors.count == 2 + request.masks.count else {
            throw RenderError(
                .encodingFailed, "received \(descriptors.count) descriptors for \(request.masks.count) masks")
        }
        var job = RenderJob(
            original: EncodedBytes(count: request.count, read: { nil }), header: request.header,
            recipe: try recipe(request.recipe), output: request.output, quality: request.quality,
            limits: request.limits)
        job.light = request.light
        job.shared = request.shared
        pictures.keep(only: request.shared)
        for (index, mask) in request.masks.enumerated() {
            // An empty mask fails when it is used, with an error that names the mask.
            guard mask.count > 0 else { continue }
            job.masks[mask.name] = try MappedOriginal().with(descriptors[2 + index], count: mask.count) { [UInt8]($0) }
        }
        return try original.with(descriptors[0], count: request.count) {
            bytes throws(RenderError) -> WorkerReply.Finished in
            let fault = hasFaults ? WorkerFault.named(in: bytes) : nil
            let control = RenderControl(request.limits, request.output.format) { _ throws(RenderError) in
                // If sending fails, the front process is gone.
                _ = WorkerProgram.send(.encoding(id: request.id))
                try fault?.happen(in: .encode)
            }
            current.begin(request.id, control)
            defer {
                current.end()
                // This must happen before the bytes are unmapped, because a stop must not access an image that reads
                // from them.
                control.finish()
            }
            do throws(RenderError) {
                return try render(job, request, bytes, control, fault, output: descriptors[1])
            } catch {
                // A failure after a stop is caused by the stop, whatever error libvips reports.
                throw control.stopError ?? error
            }
        }
    }

    private func recipe(_ text: String) throws(RenderError) -> Recipe {
        if let lastRecipe, lastRecipe.text == text { return lastRecipe.recipe }
        do throws(RecipeError) {
            let recipe = try Recipe(text)
            lastRecipe = (text, recipe)
            return recipe
        } catch {
            throw RenderError(.notApplicable, "recipe `\(text)`: \(error.description)")
        }
    }

    private func render(
        _ job: RenderJob, _ request: WorkerRequest, _ bytes: UnsafeRawBufferPointer, _ control: RenderControl,
        _ fault: WorkerFault?, output: Int32
    ) throws(RenderError) -> WorkerReply.Finished {
        try fault?.happen(in: .pixels)
        try control.check()
        let render = Render(job, bytes, control, pictures)
        var finished: WorkerReply.Finished
        switch request.kind {
        case .variant:
            let variant = try render.variant()
            finished = WorkerReply.Finished(variant, id: request.id)
            try Self.write(variant.bytes, to: output)
        case .pixels:
            let pixels = try render.pixels()
            finished = WorkerReply.Finished(pixels, id: request.id)
            try Self.write(pixels.pixels, to: output)
        }
        fault?.corrupt(&finished, output: output)
        return finished
    }

    private static func write(_ bytes: [UInt8], to file: Int32) throws(RenderError) {
        guard bytes.withUnsafeBytes({ FileIO.write($0, to: file, at: 0) }) else {
            throw RenderError(
                .overLimit,
                "the output of \(bytes.count) bytes exceeds the maximum size of a variant; use a smaller size or a lower quality"
            )
        }
        // Truncate the file, because it may still contain the end of the last render's output.
        guard ftruncate(file, bytes.count) == 0 else {
            throw RenderError(.encodingFailed, "the output's length cannot be set: \(String(cString: strerror(errno)))")
        }
    }
}

extension WorkerReply.Finished {
    fileprivate init(_ variant: RenderedVariant, id: UInt64) {
        self.init(
            id: id, count: variant.bytes.count, width: variant.width, height: variant.height,
            hasAlpha: variant.hasAlpha, isDamaged: variant.isDamaged,
            reencodingReason: variant.reencodingReason ?? "", decode: variant.timings.decode.milliseconds,
            operations: variant.timings.operations.milliseconds, encode: variant.timings.encode.milliseconds,
            cpu: variant.cpuTime.inSeconds * 1000)
    }

    fileprivate init(_ pixels: PixelBuffer, id: UInt64) {
        self.init(
            id: id, count: pixels.pixels.count, width: pixels.width, height: pixels.height, hasAlpha: true, decode: 0,
            operations: 0, encode: 0, cpu: 0)
    }
}

/// Checks that the sandbox works. Implements `render-worker --check`.
enum WorkerCheck {
    /// - Parameter executes: whether to also try to start a program, which kills the process if seccomp is in force.
    static func run(executes: Bool) -> Int32 {
        let parent = getppid()
        let protection = WorkerProgram.lock(memory: 1 << 30)
        let attempts: [(String, Int32)] = [
            ("open", csandbox_attempt_open("/etc/passwd")), ("connect", csandbox_attempt_socket()),
            ("fork", csandbox_attempt_fork()), ("signal", csandbox_attempt_signal(parent)),
            ("limits", csandbox_attempt_limits()),
        ]
        print("in force: \(protection)")
        for (name, status) in attempts { print("\(name): \(status == 0 ? "allowed" : "denied")") }
        guard executes else { return 0 }
        fflush(nil)
        print("execute: \(csandbox_attempt_execute("/bin/true") == 0 ? "allowed" : "denied")")
        return 0
    }
}
