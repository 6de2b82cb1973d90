import CRedis
import Glibc
import PipelineSupport
import Synchronization

/// A connection to a Redis server. It is opened on first use, and reopened after a failure.
///
/// Calls are performed one after the other on the connection's thread. A blocking command delays all other calls, so
/// use a separate connection for it.
package final class RedisConnection: Sendable {
    /// Whether hiredis can be loaded.
    package static var isLibraryInstalled: Bool { credis_load() }

    package struct Configuration: Sendable {
        package var url: RedisURL
        /// The path of a PEM file with the certificate authorities to trust for `rediss://`. If nil, the system's
        /// authorities are trusted.
        package var authoritiesFile: String?
        /// The maximum number of seconds for a call, including the time for connecting. Defaults to 5.
        package var timeoutSeconds = 5.0
        /// The maximum size of a reply in bytes. Defaults to 32 MiB. A full batch of the largest purges takes 8 MiB.
        package var maxReplyBytes = 32 << 20
        /// The number of seconds after a failure during which no attempt is made. It is doubled with each further
        /// failure. Defaults to 0.1.
        package var firstBackoffSeconds = 0.1
        /// The maximum number of seconds after doubling. Defaults to 10.
        package var maxBackoffSeconds = 10.0

        package init(_ url: RedisURL) { self.url = url }
    }

    private let configuration: Configuration
    private let worker: RedisWorker
    private let thread = OwnedThreads(count: 1)

    var url: RedisURL { configuration.url }

    package init(_ configuration: Configuration) {
        self.configuration = configuration
        worker = RedisWorker(configuration)
    }

    deinit { close() }

    /// Sends commands in one write and returns their replies in order. Errors of individual commands are among the
    /// replies.
    ///
    /// A failure closes the connection. The server may have executed the commands nevertheless.
    ///
    /// - Parameter timeoutSeconds: the timeout, measured from the beginning of the call. If nil, the configured timeout
    ///   is used. If the call is waiting for other calls on the same connection, it may end later than its timeout.
    package func send(
        _ commands: [[RedisWord]], timeoutSeconds: Double? = nil
    ) async throws(RedisError) -> [RedisReply] {
        let url = url
        if thread.isEmpty { throw RedisError(.unreachable, url, "the system cannot start a thread") }
        let deadline = SystemClock.monotonic.seconds + (timeoutSeconds ?? configuration.timeoutSeconds)
        let call = RedisCall()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                call.begin(continuation)
                thread.submit { [worker] in call.end(worker.result(of: commands, deadline, call)) }
            }
        } onCancel: {
            call.end(.failure(RedisError(.cancelled, url, "the call was cancelled")))
            worker.wake()
        }
        return try result.get()
    }

    /// Closes the connection, which ends all calls at once.
    package func close() {
        worker.close()
        thread.submit { [worker] in worker.disconnect() }
    }
}

/// The continuation of a call. It is resumed by the result of the call or by its cancellation, whichever comes first.
private final class RedisCall: Sendable {
    typealias Outcome = Result<[RedisReply], RedisError>
    private struct State {
        var outcome: Outcome?
        var waiter: CheckedContinuation<Outcome, Never>?
    }
    private let state = Mutex(State())

    var hasEnded: Bool { state.withLock { $0.outcome != nil } }

    func begin(_ waiter: CheckedContinuation<Outcome, Never>) {
        let outcome = state.withLock { state in
            if state.outcome == nil { state.waiter = waiter }
            return state.outcome
        }
        if let outcome { waiter.resume(returning: outcome) }
    }

    func end(_ outcome: Outcome) {
        let waiter = state.withLock { state in
            if state.outcome == nil { state.outcome = outcome }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: outcome)
    }
}

/// The part of a connection that runs on its thread.
///
/// `@unchecked Sendable` because `shared` is locked, and everything else is used only by the thread.
private final class RedisWorker: @unchecked Sendable {
    private struct Shared {
        var isClosed = false
        /// This is created by the thread with the first connection.
        var wait: RedisWait?
    }
    private let shared = Mutex(Shared())
    private let configuration: RedisConnection.Configuration
    private var link: RedisLink?
    private var call: RedisCall?
    private var backoff = RedisBackoff()
    private var lastFailure: RedisError?

    init(_ configuration: RedisConnection.Configuration) { self.configuration = configuration }

    /// Ends the thread's wait. Before that, the caller must store the reason where `check` finds it.
    func wake() { shared.withLock { $0.wait }?.wake() }

    func close() {
        shared.withLock { $0.isClosed = true }
        wake()
    }

    func disconnect() { link = nil }

    func result(of commands: [[RedisWord]], _ deadline: Double, _ call: RedisCall) -> RedisCall.Outcome {
        self.call = call
        defer { self.call = nil }
        return Result { () throws(RedisError) in
            try check()
            return try replies(to: commands, deadline)
        }
    }

    /// Throws if the connection was closed or the current call was cancelled.
    private func check() throws(RedisError) {
        if shared.withLock({ $0.isClosed }) { throw RedisError(.closed, configuration.url, "the connection is closed") }
        if call?.hasEnded == true { throw RedisError(.cancelled, configuration.url, "the call was cancelled") }
    }

    private func replies(to commands: [[RedisWord]], _ deadline: Double) throws(RedisError) -> [RedisReply] {
        if link?.isStale == true { link = nil }
        if link == nil { try failDuringBackoff() }
        do throws(RedisError) {
            let link = try connectedLink(deadline)
            let replies = try link.exchange(commands, deadline: deadline)
            backoff = RedisBackoff()
            return replies
        } catch {
            // Replies to this call may still arrive, so the link cannot be reused.
            link = nil
            guard error.code != .cancelled, error.code != .closed else { throw error }
            var failure = error
            failure.retrySeconds = backoff.fail(configuration, now: SystemClock.monotonic.seconds)
            lastFailure = failure
            throw failure
        }
    }

    private func failDuringBackoff() throws(RedisError) {
        let seconds = backoff.retryAt - SystemClock.monotonic.seconds
        guard seconds > 0, let last = lastFailure else { return }
        var failure = last
        failure.retrySeconds = seconds
        failure.message += "; retrying in \((seconds * 10).rounded(.up) / 10) s"
        throw failure
    }

    private func connectedLink(_ deadline: Double) throws(RedisError) -> RedisLink {
        if let link { return link }
        let url = configuration.url
        guard credis_load() else {
            throw RedisError(
                .libraryUnavailable, url,
                "the library hiredis is not installed; install libhiredis0.14 (Debian 12) or libhiredis1.1.0 (Debian 13)"
            )
        }
        guard let wait = shared.withLock({ $0.wait }) ?? RedisWait() else {
            throw RedisError(
                .libraryUnavailable, url,
                "the library libcurl is not installed; install libcurl4 (Debian 12) or libcurl4t64 (Debian 13)")
        }
        shared.withLock { $0.wait = wait }
        // Leave signals to the program's own threads, because OpenSSL would raise SIGPIPE here.
        var all = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_BLOCK, &all, nil)
        let link = try RedisLink(configuration, wait, deadline: deadline) { [unowned self] () throws(RedisError) in
            try check()
        }
        self.link = link
        return link
    }
}
