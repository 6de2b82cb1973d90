import CCurl
import CRedis
import Glibc
import PipelineSupport

/// One TCP or TLS connection to a server. libcurl connects and transfers the bytes, and hiredis parses the replies.
///
/// The easy handle stays in the multi handle, and bytes pass through `curl_easy_send` and `curl_easy_recv`, as
/// documented for CURLOPT_CONNECT_ONLY. This class is used only on the connection's thread.
final class RedisLink {
    private let configuration: RedisConnection.Configuration
    private let wait: RedisWait
    /// Throws if the current call must stop. This is called before every wait.
    private let check: () throws(RedisError) -> Void
    private let easy: UnsafeMutableRawPointer
    private let reader: OpaquePointer
    private var socket: curl_socket_t = -1
    /// Whether the server has replied according to the Redis protocol.
    private var isIntroduced = false
    private var piece = [UInt8](repeating: 0, count: 64 << 10)
    /// The number of bytes received since the last complete reply.
    private var unread = 0

    private var url: RedisURL { configuration.url }

    /// Connects and authenticates.
    init(
        _ configuration: RedisConnection.Configuration, _ wait: RedisWait, deadline: Double,
        check: @escaping () throws(RedisError) -> Void
    ) throws(RedisError) {
        guard let easy = curl_easy_init() else {
            throw RedisError(.unreachable, configuration.url, "libcurl is out of memory")
        }
        guard let reader = credis_reader_create() else {
            curl_easy_cleanup(easy)
            throw RedisError(.unreachable, configuration.url, "hiredis is out of memory")
        }
        (self.configuration, self.wait, self.check) = (configuration, wait, check)
        (self.easy, self.reader) = (easy, reader)
        try connect(deadline)
        try authenticate(deadline)
    }

    deinit {
        curl_multi_remove_handle(wait.multi, easy)
        curl_easy_cleanup(easy)
        credis_reader_free(reader)
    }

    private func connect(_ deadline: Double) throws(RedisError) {
        let milliseconds = Int(max((deadline - SystemClock.monotonic.seconds) * 1000, 1))
        var statuses = [
            ccurl_set_string(easy, CURLOPT_URL, "\(url.isTLS ? "https" : "http")://\(url.authority)/"),
            ccurl_set_string(easy, CURLOPT_PROTOCOLS_STR, "http,https"),
            ccurl_set_long(easy, CURLOPT_CONNECT_ONLY, 1),
            ccurl_set_string(easy, CURLOPT_PROXY, ""),
            ccurl_set_long(easy, CURLOPT_NOSIGNAL, 1),
            ccurl_set_long(easy, CURLOPT_CONNECTTIMEOUT_MS, milliseconds),
            ccurl_set_long(easy, CURLOPT_TCP_KEEPALIVE, 1),
            ccurl_set_open_socket_function(easy, openSocket),
            // Disable ALPN, because it would offer HTTP.
            ccurl_set_long(easy, CURLOPT_SSL_ENABLE_ALPN, 0),
            ccurl_set_long(easy, CURLOPT_SSLVERSION, tlsVersion12),
            ccurl_set_long(easy, CURLOPT_SSL_VERIFYPEER, 1),
            ccurl_set_long(easy, CURLOPT_SSL_VERIFYHOST, 2),
        ]
        if let file = configuration.authoritiesFile {
            // Otherwise libcurl would also trust the system's folder of certificate authorities.
            statuses += [ccurl_set_string(easy, CURLOPT_CAINFO, file), ccurl_set_string(easy, CURLOPT_CAPATH, nil)]
        }
        guard statuses.allSatisfy({ $0 == CURLE_OK }), curl_multi_add_handle(wait.multi, easy) == CURLM_OK else {
            throw RedisError(
                .libraryUnavailable, url, "libcurl does not support a required option; install a newer version")
        }
        var running: Int32 = 0
        while curl_multi_perform(wait.multi, &running) == CURLM_OK, running > 0 {
            try checkDeadline(deadline, "connecting")
            wait.wait(until: deadline)
        }
        var left: Int32 = 0
        guard let message = curl_multi_info_read(wait.multi, &left), message.pointee.msg == CURLMSG_DONE else {
            throw RedisError(.unreachable, url, "libcurl cannot connect")
        }
        if let error = failure(ccurl_message_result(message)) { throw error }
        guard ccurl_get_socket(easy, &socket) == CURLE_OK, socket >= 0 else { throw broken(Self.isClosedThere) }
    }

    /// Translates libcurl's status. Returns nil on success.
    private func failure(_ status: CURLcode) -> RedisError? {
        let text = String(cString: curl_easy_strerror(status))
        switch status {
        case CURLE_OK: return nil
        case CURLE_COULDNT_RESOLVE_HOST:
            return RedisError(.unreachable, url, "the host name `\(url.host)` cannot be resolved; check the name")
        case CURLE_COULDNT_CONNECT:
            return RedisError(
                .unreachable, url, "cannot connect; check that the server is running and listening on this port")
        case CURLE_OPERATION_TIMEDOUT: return timedOut("connecting")
        case CURLE_SSL_CACERT_BADFILE:
            return RedisError(
                .tls, url,
                "cannot read the certificate authorities in `\(configuration.authoritiesFile ?? "")` (\(text))")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_SSL_ISSUER_ERROR:
            return RedisError(
                .tls, url,
                "\(text); check that the certificate is valid for `\(url.host)` and issued by a trusted authority")
        case CURLE_SSL_CONNECT_ERROR:
            return RedisError(.tls, url, "\(text); check that the server uses TLS on this port (its `tls-port`)")
        default: return broken("the connection was lost (\(text))")
        }
    }

    private static let isClosedThere = "the server closed the connection"

    private func broken(_ problem: String) -> RedisError {
        let advice =
            url.isTLS
            ? "; if it requires client certificates, set `tls-auth-clients` to no in its configuration"
            : "; if it uses TLS on this port, use rediss://"
        return RedisError(.unreachable, url, problem + (isIntroduced ? "" : advice))
    }

    private func timedOut(_ activity: String) -> RedisError {
        let advice = socket < 0 && url.isTLS ? ", or does not use TLS on this port" : ""
        return RedisError(
            .timedOut, url, "no response in time (\(activity)); the server may be overloaded or stopped\(advice)")
    }

    private func checkDeadline(_ deadline: Double, _ activity: String) throws(RedisError) {
        try check()
        if SystemClock.monotonic.seconds >= deadline { throw timedOut(activity) }
    }

    /// Authenticates and selects the database. PING shows whether a password is missing, and whether the server is
    /// Redis.
    private func authenticate(_ deadline: Double) throws(RedisError) {
        var commands: [[RedisWord]] = []
        if let password = url.password {
            commands.append(["AUTH"] + (url.user.isEmpty ? [] : [RedisWord(url.user)]) + [RedisWord(password)])
        }
        if url.database != 0 { commands.append(["SELECT", RedisWord(url.database)]) }
        commands.append(["PING"])
        let replies = try exchange(commands, deadline: deadline)
        for reply in replies {
            // A user's ACL may not allow PING.
            if case .error(let text) = reply, !text.hasPrefix("NOPERM") { throw .reply(text, url) }
        }
        isIntroduced = true
    }

    /// Whether the server has closed the connection, or sent data that no command requested.
    var isStale: Bool {
        var count = 0
        return curl_easy_recv(easy, &piece, piece.count, &count) != CURLE_AGAIN
    }

    /// Sends all commands and returns their replies in order. The link cannot be used after an error.
    func exchange(_ commands: [[RedisWord]], deadline: Double) throws(RedisError) -> [RedisReply] {
        var bytes: [UInt8] = []
        for command in commands {
            guard let formatted = command.formatted else {
                throw RedisError(.unreachable, url, "hiredis is out of memory")
            }
            bytes += formatted
        }
        var replies: [RedisReply] = []
        var sent = 0
        while replies.count < commands.count {
            try check()
            sent += try send(bytes, from: sent)
            // A reply that has arrived is accepted, however late it is read, because the process may have been stopped
            // in the meantime.
            if try receive(into: &replies) { continue }
            try checkDeadline(deadline, "received \(replies.count) of \(commands.count) replies")
            // Replies are read while commands are written. Otherwise, server and client could wait for each other.
            let events = CURL_WAIT_POLLIN | (sent < bytes.count ? CURL_WAIT_POLLOUT : 0)
            wait.wait(until: deadline, socket: socket, events: events)
        }
        guard replies.count == commands.count else {
            throw RedisError(.protocolViolation, url, "the server sent more replies than it received commands")
        }
        return replies
    }

    /// Sends as many bytes as the socket accepts. Returns their number.
    private func send(_ bytes: [UInt8], from start: Int) throws(RedisError) -> Int {
        guard start < bytes.count else { return 0 }
        var count = 0
        let status = bytes.withUnsafeBytes { bytes in
            curl_easy_send(easy, bytes.baseAddress.map { $0 + start }, bytes.count - start, &count)
        }
        if status != CURLE_AGAIN, let error = failure(status) { throw error }
        return count
    }

    /// Reads received bytes. Returns false if no more bytes are available.
    private func receive(into replies: inout [RedisReply]) throws(RedisError) -> Bool {
        var count = 0
        let status = curl_easy_recv(easy, &piece, piece.count, &count)
        if status == CURLE_AGAIN { return false }
        if let error = failure(status) { throw error }
        guard count > 0 else { throw broken(Self.isClosedThere) }
        guard credis_reader_feed(reader, piece, count) else {
            throw RedisError(.unreachable, url, "hiredis is out of memory")
        }
        unread += count
        while true {
            var next: OpaquePointer?
            guard credis_reader_next(reader, &next) else {
                throw malformed(String(cString: credis_reader_problem(reader)))
            }
            guard let next else { break }
            defer { credis_reply_free(next) }
            guard let reply = RedisReply(next) else { throw malformed("the reply has an unknown type") }
            replies.append(reply)
            unread = 0
        }
        guard unread <= configuration.maxReplyBytes else {
            throw RedisError(
                .protocolViolation, url, "a reply exceeds the limit of \(configuration.maxReplyBytes) bytes")
        }
        return true
    }

    private func malformed(_ problem: String) -> RedisError {
        let advice = url.isTLS ? "" : "; check that this is a Redis server, and use rediss:// if it requires TLS"
        return RedisError(
            .protocolViolation, url, "the server's response is not valid in the Redis protocol (\(problem))\(advice)")
    }
}

/// CURL_SSLVERSION_TLSv1_2, a member of an anonymous enumeration. It requires at least TLS 1.2 (RFC 8996).
private let tlsVersion12 = 6

/// Opens the socket so that child processes do not inherit it (CURLOPT_OPENSOCKETFUNCTION).
private func openSocket(
    _: UnsafeMutableRawPointer?, _: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let address = address?.pointee else { return -1 }
    return Glibc.socket(address.family, address.socktype | Int32(SOCK_CLOEXEC.rawValue), address.protocol)
}
