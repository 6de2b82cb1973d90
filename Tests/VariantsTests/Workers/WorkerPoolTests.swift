import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Variants

/// Pools with the built `pipectl` as workers. One after another, since descriptors and children are counted.
@Suite(.serialized) struct WorkerPoolTests {
    static func configuration(_ change: (inout WorkerConfiguration) -> Void = { _ in }) -> WorkerConfiguration {
        var configuration = WorkerConfiguration()
        configuration.maxConcurrentRenders = 1
        configuration.environment = [WorkerConfiguration.faultsVariable + "=1"]
        change(&configuration)
        return configuration
    }

    /// A small picture; with a fault, one that sets it off.
    static func job(
        _ fault: WorkerFault? = nil, seconds: Double = 100, encodeSeconds: Double = 100
    ) throws -> RenderJob {
        let bytes = try RenderFixture.jpeg(RenderFixture.gradientImage(120, 90))
        var job = RenderFixture.job(
            bytes + (fault.map { Array("pipectl-fault:\($0.rawValue)".utf8) } ?? []), .jpeg, 120, 90,
            try Recipe("thumbnail:30"), ResolvedOutput(format: .png))
        job.limits.timeout = .seconds(seconds)
        job.limits.encodeTimeout = .seconds(encodeSeconds)
        return job
    }

    static func error(_ pool: WorkerPool, _ job: RenderJob) async -> RenderError? {
        do throws(RenderError) {
            _ = try await pool.render(job)
            return nil
        } catch {
            return error
        }
    }

    /// The children of this process that render.
    static func workers() -> [Int] {
        processes().filter { number in
            FileText.read("/proc/\(number)/cmdline").contains(RenderWorker.argument)
                && FileText.read("/proc/\(number)/status").contains("PPid:\t\(getpid())\n")
        }
    }

    /// Returns once a worker hangs: that one goes to sleep a thousand times a second, which no other does.
    ///
    /// A render that is cancelled before costs no worker.
    static func untilOneHangs() async throws {
        func sleeps() -> Int {
            workers().map { number in
                let lines = FileText.read("/proc/\(number)/status").split(separator: "\n")
                let count = lines.first { $0.hasPrefix("voluntary_ctxt_switches:") }?.split(separator: "\t").last
                return count.flatMap { Int($0) } ?? 0
            }.max() ?? 0
        }
        try await waitWhile { sleeps() < 300 }
    }

    /// Workers that have ended and were not waited for. Other tests have other children.
    static func zombies() -> Int {
        processes().count { number in
            let status = FileText.read("/proc/\(number)/status")
            return status.hasPrefix("Name:\trender-worker\n") && status.contains("PPid:\t\(getpid())\n")
                && status.contains("State:\tZ")
        }
    }

    private static func processes() -> [Int] { FolderEntries.names("/proc").compactMap { Int($0) } }

    /// Files in memory that this process has open; its other tests open and close files of other kinds meanwhile.
    private static func openFiles() -> Int {
        FolderEntries.names("/proc/self/fd").count { name in
            var target = [CChar](repeating: 0, count: 64)
            return readlink("/proc/self/fd/\(name)", &target, 63) > 0 && strncmp(target, "/memfd:", 7) == 0
        }
    }

    @Test func `a worker makes the bytes and pixels that this process makes`() async throws {
        let pool = WorkerPool(Self.configuration())
        let job = try Self.job()
        let here = try await RenderFixture.renderer.render(job)
        let there = try await pool.render(job)
        #expect(there.bytes == here.bytes && there.width == 30 && there.height == 23 && !there.hasAlpha)
        #expect(there.cpuTime > .zero)
        #expect(try await pool.pixels(job) == RenderFixture.renderer.pixels(job))
        #expect(
            pool.statistics
                == {
                    var one = WorkerStatistics(); one.started = 1; return one
                }())
        await pool.shutdown()
    }

    @Test func `a worker's files hold one original and output after the other, larger and smaller`() async throws {
        let pool = WorkerPool(Self.configuration())
        // The largest needs a separate file, which is not kept.
        for (width, height, noise) in [
            (120, 90, 0), (700, 500, 0), (60, 50, 0), (400, 300, 20_000_000), (90, 120, 0),
        ] {
            var job = try Self.job()
            let jpeg = try RenderFixture.jpeg(RenderFixture.gradientImage(width, height))
            job.original = EncodedBytes(jpeg + [UInt8](repeating: 7, count: noise))
            job.header = ImageHeader(format: .jpeg, encodedWidth: width, encodedHeight: height)
            job.recipe = try Recipe("scaled:0.5")
            let (here, there) = (try await RenderFixture.renderer.render(job), try await pool.render(job))
            #expect(there.bytes == here.bytes && there.width == width / 2)
            #expect(try await pool.pixels(job) == RenderFixture.renderer.pixels(job))
        }
        #expect(pool.statistics.started == 1)
        await pool.shutdown()
    }

    @Test(arguments: [false, true], [false, true])
    func `a JPEG XL that does not fit in a worker's memory is refused and crashes no worker`(
        isLossless: Bool, isUsed: Bool
    ) async throws {
        var outcomes: [RenderError.Code?] = []
        for mebibytes in stride(from: 96, through: 208, by: 16) {
            let pool = WorkerPool(Self.configuration { $0.memory = mebibytes << 20 })
            var job = try Self.job()
            if isUsed {
                for recipe in ["scaled:4,png", "scaled:6,blur:3,jpeg", "scaled:3,webp"] {
                    job.recipe = try Recipe(recipe)
                    _ = await Self.error(pool, job)
                }
            }
            job.output = ResolvedOutput(format: .jxl, isLossless: isLossless)
            job.recipe = try Recipe("scaled:10")
            let error = await Self.error(pool, job)
            outcomes.append(error?.code)
            if let error { #expect(error.message.contains("limits.workerMemory"), "\(mebibytes) MiB: \(error)") }
            #expect(try await pool.render(Self.job()).width == 30)
            #expect(pool.statistics.started == 1 && pool.statistics.crashed == 0)
            await pool.shutdown()
        }
        #expect(outcomes.first == .overLimit && outcomes.last == .some(nil), "\(outcomes)")
        #expect(outcomes.allSatisfy { $0 == nil || $0 == .overLimit }, "\(outcomes)")
    }

    @Test func `what cannot be rendered is told in the words of the renderer`() async throws {
        let pool = WorkerPool(Self.configuration())
        var job = try Self.job()
        job.original = EncodedBytes(Array(try job.original.bytes().dropLast(400)))
        #expect(await Self.error(pool, job)?.code == .undecodable)
        job = try Self.job()
        job.recipe = try Recipe("mask:star")
        #expect(await Self.error(pool, job)?.code == .maskUnavailable)
        job.masks = ["star": try RenderFixture.png(RenderFixture.image(8, 8, bands: 1) { x, _ in [x < 4 ? 0 : 255] })]
        #expect(try await pool.render(job).hasAlpha)
        job.limits.pixels = 5
        #expect(await Self.error(pool, job)?.code == .overLimit)
        #expect(pool.statistics.started == 1)
        await pool.shutdown()
    }

    @Test(arguments: [
        (WorkerFault.segv, "was killed by SIGSEGV"), (.abort, "was killed by SIGABRT"), (.exit, "exit code 7"),
        (.memory, "limits.workerMemory"), (.execute, "was killed by SIGSYS"),
    ]) func `a worker that dies costs one request, and says how`(fault: WorkerFault, words: String) async throws {
        let told = Mutex<[String]>([])
        let pool = WorkerPool(
            Self.configuration {
                $0.memory = 256 << 20
                $0.warn = { text in told.withLock { $0.append(text) } }
            })
        let error = await Self.error(pool, try Self.job(fault))
        #expect(error?.code == .crashed && error?.message.contains(words) == true, "\(error?.message ?? "no error")")
        #expect(await Self.error(pool, try Self.job()) == nil)
        #expect(pool.statistics.crashed == 1 && pool.statistics.started == 2)
        #expect(told.withLock { $0.count } == 1)
        await pool.shutdown()
    }

    @Test(arguments: [WorkerFault.nonsense, .stranger, .count, .size, .garbage, .flood])
    func `a worker whose answer is not true is killed, and its answer refused`(fault: WorkerFault) async throws {
        let pool = WorkerPool(Self.configuration())
        var job = try Self.job(fault)
        // The largest output is then some megabytes.
        job.limits.outputEdge = 100
        job.limits.pixels = 20_000
        let error = await Self.error(pool, job)
        #expect(error?.code == .workerProtocol, "\(error?.message ?? "no error")")
        #expect(await Self.error(pool, try Self.job()) == nil)
        #expect(pool.statistics.killed == 1 && pool.statistics.started == 2)
        await pool.shutdown()
    }

    @Test(arguments: [WorkerFault.open, .connect]) func `a worker is not permitted to open a file or a connection`(
        fault: WorkerFault
    ) async throws {
        let pool = WorkerPool(Self.configuration())
        let error = await Self.error(pool, try Self.job(fault))
        #expect(error?.code == .notApplicable && error?.message == "it was denied")
        #expect(pool.statistics.started == 1)
        await pool.shutdown()
    }

    @Test func `a render that hangs is ended at its deadline, and the next one succeeds`() async throws {
        let pool = WorkerPool(Self.configuration())
        let error = await Self.error(pool, try Self.job(.hang, seconds: 0.05))
        #expect(error?.code == .deadline, "\(error?.message ?? "")")
        #expect(await Self.error(pool, try Self.job()) == nil)
        #expect(pool.statistics.killed == 1)
        await pool.shutdown()
    }

    @Test func `a cancelled render is stopped where it heeds that, and killed where it does not`() async throws {
        let pool = WorkerPool(Self.configuration())
        for fault in [WorkerFault.hang, nil] {
            var job = try Self.job(fault)
            if fault == nil {
                job.original = EncodedBytes(try RenderFixture.jpeg(RenderFixture.gradientImage(1200, 900)))
                job.header = ImageHeader(format: .jpeg, encodedWidth: 1200, encodedHeight: 900)
                job.recipe = try Recipe("scaled:4")
            }
            let slow = job
            let hasEnded = Flag()
            let task = Task {
                defer { hasEnded.set() }
                return await Self.error(pool, slow)
            }
            try await waitWhile { pool.running == 0 && !hasEnded.isSet }
            task.cancel()
            // On a machine that stands still, what does not hang may be done before anybody looks.
            let code = await task.value?.code
            #expect(code == .cancelled || fault == nil && code == nil)
            #expect(await Self.error(pool, try Self.job()) == nil)
        }
        #expect(pool.statistics.crashed == 0)
        await pool.shutdown()
    }

    @Test func `a render cancelled while it waits never reaches a worker`() async throws {
        let pool = WorkerPool(Self.configuration())
        let hanging = try Self.job(.hang)
        let first = Task { await Self.error(pool, hanging) }
        try await waitWhile { pool.running == 0 }
        let waiting = try Self.job()
        let second = Task { await Self.error(pool, waiting) }
        second.cancel()
        #expect(await second.value?.code == .cancelled)
        first.cancel()
        #expect(await first.value?.code == .cancelled)
        await pool.shutdown()
    }

    @Test func `workers are replaced after their share of renders, unnoticed`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxRenders = 2 })
        for _ in 0..<5 { #expect(await Self.error(pool, try Self.job()) == nil) }
        #expect(pool.statistics.started == 3 && pool.statistics.recycled == 2)
        await pool.shutdown()
    }

    @Test func `a worker killed while it is idle costs nothing`() async throws {
        let pool = WorkerPool(Self.configuration())
        #expect(await Self.error(pool, try Self.job()) == nil)
        for worker in Self.workers() { kill(pid_t(worker), SIGKILL) }
        for _ in 0..<3 { #expect(await Self.error(pool, try Self.job()) == nil) }
        #expect(pool.statistics.started == 2 && pool.statistics.crashed == 1)
        await pool.shutdown()
    }

    /// A worker that does not run any more, but is there and may be killed.
    private static func stoppedWorker() async throws -> pid_t {
        let worker = pid_t(try #require(workers().first))
        kill(worker, SIGSTOP)
        try await waitWhile { !isStopped(Int(worker)) }
        return worker
    }

    static func isStopped(_ worker: Int) -> Bool { FileText.read("/proc/\(worker)/status").contains("State:\tT") }

    @Test func `a worker that was killed before it read what it was sent is told from one that died of it`()
        async throws
    {
        for reads in [false, true] {
            let worker = try WorkerProcess.start(Self.configuration())
            let pending = PendingRender(id: 1, kind: .variant, job: try Self.job(.hang), priority: 0)
            if !reads { _ = try await Self.stoppedWorker() }
            let files = try RenderFiles(pending.job, to: worker)
            try #require(worker.send(try WorkerRequest(pending), files.descriptors, limits: pending.job.limits))
            if reads { try await Self.untilOneHangs() }
            kill(worker.child, SIGKILL)
            try await waitWhile { !worker.isDefunct }
            switch worker.receiveReply() {
            case .unread: #expect(!reads)
            case .gone: #expect(reads)
            default: Issue.record("an answer")
            }
            _ = worker.end()
        }
    }

    @Test func `a worker that was killed reads nothing any more, though it has not run since`() async throws {
        // Glibc's overlay has neither.
        typealias Affinity = @convention(c) (pid_t, Int, UnsafeMutableRawPointer) -> Int32
        let get = unsafeBitCast(try #require(dlsym(nil, "sched_getaffinity")), to: Affinity.self)
        let set = unsafeBitCast(try #require(dlsym(nil, "sched_setaffinity")), to: Affinity.self)
        var all = [UInt8](repeating: 0, count: 128)
        try #require(get(0, all.count, &all) == 0)
        var one = [UInt8](repeating: 0, count: 128)
        let first = try #require(all.firstIndex { $0 != 0 })
        one[first] = all[first] & (0 &- all[first])
        for _ in 0..<5 {
            let worker = try WorkerProcess.start(Self.configuration())
            let pending = PendingRender(id: 1, kind: .variant, job: try Self.job(), priority: 0)
            let files = try RenderFiles(pending.job, to: worker)
            let request = try WorkerRequest(pending)
            try await waitWhile { !FileText.read("/proc/\(worker.child)/status").contains("State:\tS") }
            // On this thread's processor, and as SCHED_IDLE (5), it gets no turn between the kill and the request.
            var priority = sched_param()
            sched_setscheduler(worker.child, 5, &priority)
            for process in [0, worker.child] { _ = set(process, one.count, &one) }
            kill(worker.child, SIGKILL)
            let isSent = worker.send(request, files.descriptors, limits: pending.job.limits)
            _ = set(0, all.count, &all)
            // Where it had one, it is gone already.
            if isSent, case .gone = worker.receiveReply() { Issue.record("the request was read") }
            _ = worker.end()
        }
    }

    /// A render that is under way, and its worker, which stands still and has not read it.
    private static func begunWithStoppedWorker(
        _ pool: WorkerPool, _ job: RenderJob
    ) async throws -> (worker: pid_t, render: Task<RenderError?, Never>) {
        #expect(await error(pool, job) == nil)
        let worker = try await stoppedWorker()
        let render = Task { await error(pool, job) }
        try await waitWhile { pool.running == 0 }
        return (worker, render)
    }

    @Test func `a render whose worker was killed before it read it goes to another worker, and no original is blamed`()
        async throws
    {
        let pool = WorkerPool(Self.configuration())
        let job = try Self.job()
        let (worker, task) = try await Self.begunWithStoppedWorker(pool, job)
        for _ in 0..<1000 { await Task.yield() }
        kill(worker, SIGKILL)
        #expect(await task.value == nil)
        #expect(await Self.error(pool, job) == nil)
        #expect(pool.statistics.started == 2 && pool.statistics.crashed == 1 && pool.statistics.refused == 0)
        await pool.shutdown()
    }

    @Test func `a cancelled render whose worker was killed before it read it needs no other one`() async throws {
        let pool = WorkerPool(Self.configuration())
        let job = try Self.job()
        let (worker, task) = try await Self.begunWithStoppedWorker(pool, job)
        task.cancel()
        kill(worker, SIGKILL)
        #expect(await task.value?.code == .cancelled)
        try await waitWhile { pool.statistics.crashed + pool.statistics.killed == 0 }
        #expect(pool.statistics.started == 1 && pool.statistics.crashed + pool.statistics.killed == 1)
        #expect(await Self.error(pool, job) == nil)
        await pool.shutdown()
    }

    @Test(arguments: [
        ("/nonexistent/pipectl", "No such file"), ("/bin/true", "ended with exit code 0 while starting"),
        ("/bin/cat", "while starting"),
    ]) func `a program that is no worker is an error, and is not started over and over`(
        program: String, words: String
    ) async throws {
        let pool = WorkerPool(Self.configuration { $0.executable = program })
        let error = await Self.error(pool, try Self.job())
        #expect(error?.code == .workerUnavailable && error?.message.contains(words) == true, "\(error?.message ?? "")")
        await #expect(throws: RenderError.self) { try await pool.prepare() }
        #expect(pool.statistics.started == 0)
        await pool.shutdown()
        #expect(await Self.error(pool, try Self.job())?.code == .workerUnavailable)
    }

    @Test func `prepared workers are all there before the first render, and say what keeps them in`() async throws {
        let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
        let missing = try await pool.prepare()
        let protection = try #require(pool.protection)
        #expect(protection.hasNoNewPrivileges && protection.limitsResources && protection.diesWithParent)
        #expect(missing == protection.missing)
        try await waitWhile { pool.statistics.started < 2 }
        #expect(Self.workers().count == 2)
        await pool.shutdown()
        #expect(Self.workers().isEmpty)
    }

    @Test func `a worker that had to be killed is replaced before the next render, if workers are kept`() async throws {
        let pool = WorkerPool(Self.configuration())
        try await pool.prepare()
        let hanging = try Self.job(.hang)
        let task = Task { await Self.error(pool, hanging) }
        try await Self.untilOneHangs()
        task.cancel()
        #expect(await task.value?.code == .cancelled)
        try await waitWhile { pool.statistics.started < 2 }
        #expect(pool.statistics.killed == 1 && pool.statistics.crashed == 0)
        #expect(Self.workers().count == 1 && Self.zombies() == 0)
        await pool.shutdown()
        #expect(Self.workers().isEmpty && Self.zombies() == 0)
    }

    @Test func `nothing is left of a pool: no process, no descriptor`() async throws {
        // Files that the first pool of a process opens for good are not a leak of the second.
        for round in 0..<2 {
            let before = Self.openFiles()
            let pool = WorkerPool(Self.configuration { $0.maxConcurrentRenders = 2 })
            await withTaskGroup(of: Void.self) { group in
                for fault in [nil, WorkerFault.segv, nil, .garbage, nil, .exit] {
                    group.addTask { if let job = try? Self.job(fault) { _ = await Self.error(pool, job) } }
                }
            }
            await pool.shutdown()
            #expect(Self.workers().isEmpty && Self.zombies() == 0)
            if round == 1 { #expect(Self.openFiles() <= before) }
        }
    }

    @Test func `a pool that is dropped ends its workers`() async throws {
        var pool: WorkerPool? = WorkerPool(Self.configuration())
        if let pool { _ = try await pool.prepare() }
        #expect(Self.workers().count == 1)
        pool = nil
        try await waitWhile { !Self.workers().isEmpty }
    }

    @Test func `the locks hold where the kernel has them`() throws {
        let folder = FileText.read("/proc/self/comm")
        #expect(!folder.isEmpty)
        let check = try HelperProgram([try Self.configuration().program(), RenderWorker.argument, "--check"])
        #expect(check.waitForEnd() == 0)
        let text = check.text
        if text.contains("seccomp"), !text.contains("not in force") {
            for attempt in ["open", "connect", "fork", "signal", "limits"] {
                #expect(text.contains("\(attempt): denied"), "\(text)")
            }
            let executing = try HelperProgram(
                [try Self.configuration().program(), RenderWorker.argument, "--check", "execute"])
            #expect(executing.waitForEnd() == 128 + SIGSYS)
        }
    }

    @Test func `only the process that started a worker gets it to work`() throws {
        let worker = try HelperProgram([try Self.configuration().program(), RenderWorker.argument])
        #expect(worker.waitForEnd() == 2)
        #expect(worker.text.contains("cannot be run manually"))
    }
}

/// Small files of the system, as text.
enum FileText {
    static func read(_ path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(file, &buffer, buffer.count)
        return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
    }
}

/// Names in a folder.
enum FolderEntries {
    static func names(_ path: String) -> [String] {
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            names.append(
                withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }
}

/// Whether something has happened.
final class Flag: Sendable {
    private let state = Atomic(false)
    var isSet: Bool { state.load(ordering: .acquiring) }
    func set() { state.store(true, ordering: .releasing) }
}
