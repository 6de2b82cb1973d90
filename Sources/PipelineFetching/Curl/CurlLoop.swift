import PipelineSupport
import CCurl
import Glibc
import Synchronization

/// The thread that runs libcurl. It takes transfers from an inbox, begins and ends them as `TransferAdmission` decides,
/// and fails overdue transfers.
///
/// `@unchecked Sendable`: `inbox` is locked, and other threads only wake `sockets`. Everything else belongs to the
/// loop's thread.
final class CurlLoop: @unchecked Sendable {
    private struct Inbox {
        var arrivals: [Transfer] = []
        var cancellations: [Transfer] = []
        /// The transfers whose priority has been raised.
        var raises: [Transfer] = []
        /// The outcomes of writes.
        var written: [(Transfer, BodyCollector.WriteOutcome)] = []
        var isStopping = false
    }

    private let multi: UnsafeMutableRawPointer
    private let configuration: FetchConfiguration
    private let sockets: SocketWatch
    private let inbox = Mutex(Inbox())
    private let isPausing = Atomic(false)

    private var admission: TransferAdmission<Transfer>
    private let waitingCount = Atomic<Int>(0)
    private var active: [UnsafeMutableRawPointer: CurlEasy] = [:]
    private var idle: [CurlEasy] = []
    /// Finished transfers. Their waiters are resumed together just before the loop pauses, because resuming a waiter
    /// wakes a thread.
    private var ended: [(Transfer, Result<RawResponse, FetchError>)] = []
    private let thread = OwnedThreads(count: 1)
    /// The threads that write bodies to disk. They start with the first body that does not fit in memory.
    private lazy var writers = OwnedThreads(count: 2)
    let lookUps = LookUpLimiter()

    /// The interval at which limits are checked while transfers run.
    private static let tickMilliseconds: Int32 = 50

    /// Starts the thread. Returns nil if libcurl or the system cannot start.
    static func start(_ configuration: FetchConfiguration) -> CurlLoop? {
        // Runs once per process, before any handle exists and only on the first fetch, because it takes 5 ms.
        guard globalState == CURLE_OK, let sockets = SocketWatch(), let multi = curl_multi_init() else { return nil }
        let loop = CurlLoop(multi, sockets, configuration)
        if loop.thread.isEmpty { return nil }
        loop.thread.submit { loop.run() }
        return loop
    }

    /// The library's version, such as `libcurl/7.88.1 OpenSSL/3.0.19 …`, or nil if the library is missing.
    static var version: String? { globalState == CURLE_OK ? String(cString: curl_version()) : nil }

    private static let globalState: CURLcode = {
        keepFreedMemory()
        return curl_global_init(Int(ccurl_global_default))
    }()

    /// Makes glibc keep freed memory for the next bodies. Bodies are allocated on this thread and freed on others. By
    /// default, glibc returns the free top of a heap to the system once it reaches 128 kB, and then has to request
    /// memory again, which costs a tenth of a small fetch. glibc keeps up to twice the size of the largest mapped chunk
    /// ever freed (mallopt(3), `M_MMAP_THRESHOLD`), so this function frees one such chunk in advance.
    private static func keepFreedMemory() {
        guard let piece = malloc(2 << 20) else { return }
        // Touch the memory. Otherwise the compiler would remove both calls.
        explicit_bzero(piece, 1)
        free(piece)
    }

    private init(_ multi: UnsafeMutableRawPointer, _ sockets: SocketWatch, _ configuration: FetchConfiguration) {
        self.multi = multi
        self.sockets = sockets
        self.configuration = configuration
        admission = TransferAdmission(configuration)
        // The limit includes connections in use. With a lower limit, the connections of slow transfers would leave no
        // room for idle connections.
        ccurl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, admission.limit)
        // The pointer is valid as long as the multi handle, because `sockets` is released after it.
        ccurl_multi_set_socket_function(multi, Unmanaged.passUnretained(sockets).toOpaque()) {
            easy, socket, what, context, _ in
            guard let context else { return 0 }
            Unmanaged<SocketWatch>.fromOpaque(context).takeUnretainedValue().watch(socket, for: what, of: easy)
            return 0
        }
    }

    deinit { curl_multi_cleanup(multi) }

    /// Submits a transfer. Every transfer completes exactly once, even if the loop stops.
    func submit(_ transfer: Transfer) {
        let isStopping = inbox.withLock { inbox in
            if !inbox.isStopping { inbox.arrivals.append(transfer) }
            return inbox.isStopping
        }
        if isStopping { transfer.complete(.failure(Self.stopped(transfer))) } else { wake() }
    }

    /// Ends the loop's pause. A running loop checks the inbox anyway, and a wake-up takes two system calls.
    private func wake() {
        if isPausing.exchange(false, ordering: .sequentiallyConsistent) { sockets.wake() }
    }

    /// Cancels a transfer unless it has completed.
    func cancel(_ transfer: Transfer) {
        transfer.isCancelled.store(true, ordering: .releasing)
        inbox.withLock { $0.cancellations.append(transfer) }
        wake()
    }

    /// Raises the priority of a waiting transfer to at least `priority`. Does not wake the loop, because the priority
    /// matters only when a slot becomes free.
    func raise(_ transfer: Transfer, to priority: UInt8) {
        transfer.raise(to: priority)
        inbox.withLock { $0.raises.append(transfer) }
    }

    /// The number of transfers that were waiting when the loop last paused.
    var waiting: Int { waitingCount.load(ordering: .acquiring) }

    /// Cancels all transfers and joins the thread. Called once.
    func stop() {
        inbox.withLock { $0.isStopping = true }
        wake()
        thread.stop()
    }

    private static func stopped(_ transfer: Transfer) -> FetchError {
        FetchError(.cancelled, transfer.request.url, "the transport was shut down")
    }

    private func run() {
        // Leave signals to the program's own threads. OpenSSL would raise SIGPIPE here.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        var nextLook = 0.0
        while true {
            let received = inbox.withLock { inbox in
                defer {
                    if !inbox.arrivals.isEmpty { inbox.arrivals = [] }
                    if !inbox.cancellations.isEmpty { inbox.cancellations = [] }
                    if !inbox.raises.isEmpty { inbox.raises = [] }
                    if !inbox.written.isEmpty { inbox.written = [] }
                }
                return inbox
            }
            for transfer in received.arrivals {
                admission.add(
                    transfer, id: transfer.id, origin: transfer.origin, address: transfer.address,
                    priority: transfer.urgency, mayGiveWay: transfer.request.method == "GET",
                    now: SystemClock.monotonic.seconds)
            }
            for transfer in received.raises { admission.raise(transfer.id, to: transfer.urgency) }
            if received.isStopping { break }
            for transfer in received.cancellations { abandon(transfer) }
            for (transfer, written) in received.written { take(written, of: transfer) }
            admit()
            // Starts new transfers and fails transfers that exceed libcurl's own limits.
            process(SocketWatch.Event(socket: CURL_SOCKET_BAD, bits: 0))
            collect()
            let now = SystemClock.monotonic.seconds
            if now >= nextLook {
                endOverdue(now: now)
                giveWay(now: now)
                nextLook = now + Double(Self.tickMilliseconds) / 1000
            }
            let pause = admit()
            waitingCount.store(admission.waitingCount, ordering: .releasing)
            // Without active transfers a slot is free, so waiting transfers are waiting only for the rate limit.
            let idle = pause.map { Int32(min(max($0 * 1000, 1).rounded(.up), 60_000)) } ?? 60_000
            let timeout = active.isEmpty ? idle : min(idle, Self.tickMilliseconds)
            deliverResults()
            waitForEvents(milliseconds: timeout)
        }
        for easy in Array(active.values) {
            if let transfer = easy.transfer { finish(easy, .failure(Self.stopped(transfer))) }
        }
        deliverResults()
        for transfer in admission.removeAll() { transfer.complete(.failure(Self.stopped(transfer))) }
        idle = []
    }

    /// Waits for sockets, a timeout or a wake-up. Work added before the pause was announced is found here. A thread
    /// that adds work later wakes the loop.
    private func waitForEvents(milliseconds: Int32) {
        isPausing.store(true, ordering: .sequentiallyConsistent)
        let hasWork = inbox.withLock {
            !$0.arrivals.isEmpty || !$0.cancellations.isEmpty || !$0.written.isEmpty || $0.isStopping
        }
        var own = -1
        curl_multi_timeout(multi, &own)
        let timeout = own < 0 ? milliseconds : Int32(min(own, Int(milliseconds)))
        let ready = sockets.wait(milliseconds: hasWork ? 0 : timeout)
        isPausing.store(false, ordering: .sequentiallyConsistent)
        for event in ready { process(event) }
    }

    /// Lets libcurl continue with a ready socket, or with expired timers.
    private func process(_ event: SocketWatch.Event) {
        var running: Int32 = 0
        curl_multi_socket_action(multi, event.socket, event.bits, &running)
    }

    /// Delivers results to the waiting callers.
    private func deliverResults() {
        for (transfer, result) in ended { transfer.complete(result) }
        ended.removeAll(keepingCapacity: true)
    }

    /// Begins the transfers that may begin. Returns the seconds until the rate limit lets the next transfer begin, or
    /// nil if no transfer is waiting for the rate limit.
    @discardableResult private func admit() -> Double? {
        guard admission.waitingCount > 0 else { return nil }
        let now = SystemClock.monotonic.seconds
        while true {
            switch admission.next(now: now) {
            case .begin(let transfer): begin(transfer)
            case .wait(let seconds): return seconds
            }
        }
    }

    private func begin(_ transfer: Transfer) {
        guard !transfer.isCancelled.load(ordering: .acquiring) else {
            return refuse(transfer, .cancelled, "cancelled")
        }
        guard let easy = idle.popLast() ?? CurlEasy(self) else {
            return refuse(transfer, .transport, "libcurl is out of memory")
        }
        guard easy.prepare(transfer) else {
            return refuse(transfer, .transport, "libcurl does not support a required option; install a newer version")
        }
        transfer.joins = { [unowned self, unowned transfer] in admission.connect(transfer.id, to: $0) }
        transfer.start(
            isCrowded: admission.underWayCount > 5 * configuration.maxConcurrentTransfers,
            now: SystemClock.monotonic.seconds)
        active[easy.handle] = easy
        let status = curl_multi_add_handle(multi, easy.handle)
        if status != CURLM_OK {
            let text = String(cString: curl_multi_strerror(status))
            finish(
                easy,
                .failure(FetchError(.transport, transfer.request.url, "the transfer could not be started (\(text))")))
        }
    }

    private func refuse(_ transfer: Transfer, _ code: FetchError.Code, _ problem: String) {
        admission.end(transfer.id)
        transfer.complete(.failure(FetchError(code, transfer.request.url, problem)))
    }

    /// Collects the results of transfers that libcurl reports as finished.
    private func collect() {
        var left: Int32 = 0
        while let message = curl_multi_info_read(multi, &left) {
            guard message.pointee.msg == CURLMSG_DONE, let handle = message.pointee.easy_handle,
                let easy = active[handle], let transfer = easy.transfer
            else { continue }
            transfer.isResolving = false
            easy.status = ccurl_message_result(message)
            if transfer.mustWait, !transfer.isConnected, easy.status != CURLE_OK {
                release(easy)
                admission.putBack(transfer.id, priority: transfer.urgency)
            } else {
                conclude(easy)
            }
        }
    }

    /// Ends a transfer that libcurl reports as finished, once its body is in memory or in a file, as the request
    /// requires.
    private func conclude(_ easy: CurlEasy) {
        guard let status = easy.status, let transfer = easy.transfer else { return }
        let error = transfer.hasEnough ? nil : FetchError(status, transfer, handle: easy.handle)
        if error == nil, let write = transfer.lastWrite() { run(write, of: transfer) }
        if transfer.isWriting { return }
        finish(easy, error.map { .failure(transfer.keepingPart($0)) } ?? transfer.response())
    }

    // MARK: Writing

    /// Runs a write of a transfer's body on another thread.
    func run(_ write: @escaping BodyCollector.Write, of transfer: Transfer) {
        writers.submit { [self] in
            let written = write()
            inbox.withLock { $0.written.append((transfer, written)) }
            wake()
        }
    }

    /// Continues a transfer after a write, unless the transfer has ended in the meantime.
    private func take(_ written: BodyCollector.WriteOutcome, of transfer: Transfer) {
        guard let easy = active.values.first(where: { $0.transfer === transfer }) else { return }
        guard transfer.take(written, now: SystemClock.monotonic.seconds) else {
            return finish(easy, transfer.response())
        }
        if easy.status != nil { return conclude(easy) }
        if let write = transfer.nextWrite() { run(write, of: transfer) }
        // CURLPAUSE_CONT is a macro of macros, which Swift does not import. libcurl delivers the data that it held back
        // at once.
        if transfer.isPaused { curl_easy_pause(easy.handle, 0) }
    }

    // MARK: Ending early

    private func endOverdue(now: Double) {
        for easy in Array(active.values) {
            guard let transfer = easy.transfer else { continue }
            if let error = transfer.exceededLimit(now: now, sending: easy.sending(over: sockets.sockets[easy.handle])) {
                shutDownIfDead(easy, now: now)
                finish(easy, .failure(transfer.keepingPart(error)))
            } else {
                admission.note(transfer.id, received: transfer.received, now: now)
            }
        }
    }

    /// Fails slow transfers that occupy slots other transfers are waiting for.
    private func giveWay(now: Double) {
        while let (id, seconds) = admission.givingWay(now: now),
            let easy = active.values.first(where: { $0.transfer?.id == id }), let transfer = easy.transfer
        {
            shutDownIfDead(easy, now: now)
            finish(
                easy,
                .failure(
                    FetchError(
                        .timeout, transfer.request.url,
                        """
                        the transfer was slow for \(Int(seconds.rounded())) s and was stopped to let a different origin begin (the maximum of \
                        \(admission.limit) transfers was in progress; raise `fetch.slots`)
                        """)))
            admit()
        }
    }

    private func abandon(_ transfer: Transfer) {
        let error = FetchError(.cancelled, transfer.request.url, "cancelled")
        if admission.remove(transfer.id) {
            transfer.complete(.failure(error))
        } else if let easy = active.values.first(where: { $0.transfer === transfer }) {
            // Clients that cancel after a while must not keep a dead connection in use either.
            shutDownIfDead(easy, now: SystemClock.monotonic.seconds, after: configuration.headerSeconds / 2)
            finish(easy, .failure(error))
        }
    }

    /// Shuts down the connection of a transfer that ends early, if nothing has arrived over the connection for half of
    /// the time that the transfer has waited. Otherwise libcurl would keep using a dead HTTP/2 connection. Other
    /// transfers on the connection fail, or libcurl repeats them on a new connection.
    ///
    /// - Parameter least: the minimum wait in seconds. A shorter wait does not show that a connection is dead.
    private func shutDownIfDead(_ easy: CurlEasy, now: Double, after least: Double = 1) {
        guard configuration.http2, let waited = easy.transfer?.waited(now: now), waited >= least,
            // libcurl reads nothing from a connection while a transfer on it is paused.
            !active.values.contains(where: { $0.ownPort == easy.ownPort && $0.transfer?.isPaused == true })
        else { return }
        sockets.shutDown(from: easy.ownPort, ifSilentFor: min(waited / 2, configuration.stallSeconds))
    }

    private func finish(_ easy: CurlEasy, _ result: Result<RawResponse, FetchError>) {
        guard let transfer = easy.transfer else { return }
        if transfer.isResolving { lookUps.giveUp(transfer.request.url.host, now: SystemClock.monotonic.seconds) }
        release(easy)
        admission.end(transfer.id)
        ended.append((transfer, result))
    }

    private func release(_ easy: CurlEasy) {
        curl_multi_remove_handle(multi, easy.handle)
        active[easy.handle] = nil
        easy.reset()
        idle.append(easy)
    }
}

/// The library that performs transfers.
package enum FetchLibrary {
    /// The library's version, such as `libcurl/7.88.1 OpenSSL/3.0.19 …`, or nil if the library is missing.
    package static var version: String? { CurlLoop.version }
}
