import CCurl
import PipelineSupport

/// Waits for a connection's socket on its thread. Other threads can end the wait.
///
/// `@unchecked Sendable` because libcurl allows `curl_multi_wakeup` on any thread, and all other uses of the handle are
/// on the connection's thread.
final class RedisWait: @unchecked Sendable {
    let multi: UnsafeMutableRawPointer

    /// Creates a wait. Returns nil if libcurl is missing or cannot start.
    init?() {
        guard Self.globalState == CURLE_OK, let multi = curl_multi_init() else { return nil }
        self.multi = multi
    }

    deinit { curl_multi_cleanup(multi) }

    private static let globalState = curl_global_init(Int(ccurl_global_default))

    /// Ends the current wait, or the next wait if no wait is in progress.
    func wake() { curl_multi_wakeup(multi) }

    /// Waits for libcurl's own sockets, and for the additional socket if one is given.
    func wait(until deadline: Double, socket: curl_socket_t? = nil, events: Int32 = 0) {
        let milliseconds = Int32(min(max((deadline - SystemClock.monotonic.seconds) * 1000, 0).rounded(.up), 60_000))
        var other = curl_waitfd(fd: socket ?? -1, events: Int16(events), revents: 0)
        curl_multi_poll(multi, &other, socket == nil ? 0 : 1, milliseconds, nil)
    }
}
