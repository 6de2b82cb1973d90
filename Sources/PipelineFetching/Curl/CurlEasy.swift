import PipelineSupport
import CCurl
import Glibc

/// One libcurl easy handle and its transfer. The callbacks receive a pointer to this object.
///
/// The object belongs to the loop's thread.
final class CurlEasy {
    let handle: UnsafeMutableRawPointer
    /// The request's header lines as a libcurl list. The list is kept because most requests have the same lines as the
    /// previous request.
    private var lines: UnsafeMutablePointer<curl_slist>?
    private var givenLines: [[UInt8]] = []
    private var addresses: UnsafeMutablePointer<curl_slist>?
    private(set) var transfer: Transfer?
    /// The status of a transfer that libcurl has finished while its body is still being written.
    var status: CURLcode?
    /// The local port of the connection, or 0 before the connection exists.
    fileprivate(set) var ownPort: Int32 = 0
    fileprivate unowned let loop: CurlLoop
    /// The last peer that the rule allowed, as libcurl spells it. The rule does not change while the handle exists.
    private var admitted: (peer: [CChar], port: Int32)?

    /// Creates a handle. Returns nil if libcurl cannot create one.
    init?(_ loop: CurlLoop) {
        guard let handle = curl_easy_init() else { return nil }
        self.handle = handle
        self.loop = loop
    }

    deinit {
        curl_easy_cleanup(handle)
        curl_slist_free_all(lines)
        curl_slist_free_all(addresses)
    }

    /// Whether the options shared by all transfers have been set.
    private var isConfigured = false

    /// Prepares the handle for a transfer. Options shared by all transfers are set only once, because setting them
    /// costs as much as a small transfer.
    ///
    /// Returns false if libcurl rejects an option. In that case, the transfer must not start, because libcurl would not
    /// enforce its limits.
    func prepare(_ transfer: Transfer) -> Bool {
        self.transfer = transfer
        if !isConfigured {
            guard configure(transfer.configuration) else { return false }
            isConfigured = true
        }
        let (hop, request) = (transfer.hop, transfer.request)
        if hop.lines != givenLines { takeLines(hop.lines) }
        var isTaken = [
            ccurl_set_string(handle, CURLOPT_URL, request.url.normalized),
            ccurl_set_list(handle, CURLOPT_HTTPHEADER, lines),
            // A fallback for our own limit, in case libcurl does not call back.
            ccurl_set_long(
                handle, CURLOPT_TIMEOUT_MS, hop.totalSeconds.isFinite ? milliseconds(hop.totalSeconds + 1) : 0),
        ].allSatisfy { $0 == CURLE_OK }
        if transfer.configuration.http2 {
            // A connection that can carry many transfers is worth waiting for.
            let isTLS = request.url.scheme == "https"
            isTaken = isTaken && ccurl_set_long(handle, CURLOPT_PIPEWAIT, isTLS ? 1 : 0) == CURLE_OK
        }
        if transfer.configuration.proxy != nil {
            isTaken = isTaken && ccurl_set_string(handle, CURLOPT_NOPROXY, transfer.usesProxy ? "" : "*") == CURLE_OK
        }
        if let given = hop.hooks.addresses(request.url.host, request.url.port) {
            let name = request.url.host.contains(":") ? "[\(request.url.host)]" : request.url.host
            addresses = curl_slist_append(nil, "\(name):\(request.url.port):" + given.joined(separator: ","))
            isTaken = isTaken && ccurl_set_list(handle, CURLOPT_RESOLVE, addresses) == CURLE_OK
        }
        if let host = hop.host { isTaken = isTaken && configure(host) }
        if let signature = request.signature { isTaken = isTaken && sign(signature) }
        if request.method != "GET" { isTaken = isTaken && configure(request) }
        return isTaken
    }

    private func takeLines(_ given: [[UInt8]]) {
        // libcurl still refers to the old list.
        _ = ccurl_set_list(handle, CURLOPT_HTTPHEADER, nil)
        curl_slist_free_all(lines)
        lines = nil
        for line in given {
            line.withUnsafeBytes { bytes in
                let text = bytes.bindMemory(to: CChar.self).baseAddress
                if let longer = curl_slist_append(lines, text) { lines = longer }
            }
        }
        givenLines = given
    }

    private func configure(_ configuration: FetchConfiguration) -> Bool {
        let context = Unmanaged.passUnretained(self).toOpaque()
        var statuses = [
            ccurl_set_long(handle, CURLOPT_PATH_AS_IS, 1),
            ccurl_set_long(handle, CURLOPT_HTTPGET, 1),
            ccurl_set_string(handle, CURLOPT_USERAGENT, configuration.userAgent),

            // libcurl may use only http and https. This program follows redirects itself and ignores proxies from the
            // environment.
            ccurl_set_string(handle, CURLOPT_PROTOCOLS_STR, "http,https"),
            ccurl_set_string(handle, CURLOPT_REDIR_PROTOCOLS_STR, "http,https"),
            ccurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0),
            ccurl_set_string(handle, CURLOPT_PROXY, configuration.proxy?.description ?? ""),
            ccurl_set_string(handle, CURLOPT_NOPROXY, "*"),
            ccurl_set_long(handle, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1),
            ccurl_set_long(handle, CURLOPT_HTTP09_ALLOWED, 0),
            ccurl_set_long(handle, CURLOPT_HTTP_VERSION, configuration.http2 ? httpVersion2TLS : httpVersion11),

            ccurl_set_long(handle, CURLOPT_SSLVERSION, tlsVersion12),
            ccurl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 1),
            ccurl_set_long(handle, CURLOPT_SSL_VERIFYHOST, 2),

            ccurl_set_long(handle, CURLOPT_NOSIGNAL, 1),
            // Without this option, libcurl blocks the loop's thread until an abandoned look-up ends.
            ccurl_set_long(handle, CURLOPT_QUICK_EXIT, 1),
            ccurl_set_long(handle, CURLOPT_TCP_KEEPALIVE, 1),
            ccurl_set_long(handle, CURLOPT_TCP_KEEPIDLE, 30),
            ccurl_set_long(handle, CURLOPT_TCP_KEEPINTVL, 10),
            ccurl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(configuration.connectSeconds + 1)),

            ccurl_set_data_function(handle, CURLOPT_HEADERFUNCTION, receiveLine),
            ccurl_set_data_function(handle, CURLOPT_WRITEFUNCTION, receiveBody),
            ccurl_set_resolver_start_function(handle, startLookUp),
            ccurl_set_open_socket_function(handle, openSocket),
            ccurl_set_prereq_function(handle, beforeRequest),
            ccurl_set_pointer(handle, CURLOPT_HEADERDATA, context),
            ccurl_set_pointer(handle, CURLOPT_WRITEDATA, context),
            ccurl_set_pointer(handle, CURLOPT_RESOLVER_START_DATA, context),
            ccurl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, context),
            ccurl_set_pointer(handle, CURLOPT_PREREQDATA, context),
        ]
        if let file = configuration.authoritiesFile { statuses += trust(file) }
        if let (user, password) = configuration.proxy?.credentials {
            statuses.append(ccurl_set_string(handle, CURLOPT_PROXYUSERNAME, user))
            statuses.append(ccurl_set_string(handle, CURLOPT_PROXYPASSWORD, password))
        }
        if let path = configuration.unixSocket {
            statuses.append(ccurl_set_string(handle, CURLOPT_UNIX_SOCKET_PATH, path))
        }
        return statuses.allSatisfy { $0 == CURLE_OK }
    }

    /// Applies the settings for one origin. `reset` removes them.
    private func configure(_ host: HostSettings) -> Bool {
        var statuses: [CURLcode] = []
        if host.isInsecure {
            statuses.append(ccurl_set_long(handle, CURLOPT_SSL_VERIFYPEER, 0))
            statuses.append(ccurl_set_long(handle, CURLOPT_SSL_VERIFYHOST, 0))
        }
        if let file = host.authoritiesFile { statuses += trust(file) }
        return statuses.allSatisfy { $0 == CURLE_OK }
    }

    /// Sets the method and body of a request that may change state. `reset` removes them.
    private func configure(_ request: FetchRequest) -> Bool {
        let (method, body) = (request.method, request.body)
        var statuses: [CURLcode] = []
        if !request.isToStore {
            // On a reused connection, libcurl would send the request again if the origin closes without a response.
            statuses.append(ccurl_set_long(handle, CURLOPT_FRESH_CONNECT, 1))
            statuses.append(ccurl_set_long(handle, CURLOPT_FORBID_REUSE, 1))
        }
        // Methods that anticipate content send its length even for an empty body (RFC 9110 §8.6).
        if !body.isEmpty || ["POST", "PUT", "PATCH"].contains(method) {
            var copied = body
            statuses.append(ccurl_set_long(handle, CURLOPT_POSTFIELDSIZE, body.count))
            copied.append(0)
            copied.withUnsafeMutableBytes { bytes in
                statuses.append(ccurl_set_pointer(handle, CURLOPT_COPYPOSTFIELDS, bytes.baseAddress))
            }
        }
        statuses.append(ccurl_set_string(handle, CURLOPT_CUSTOMREQUEST, method))
        return statuses.allSatisfy { $0 == CURLE_OK }
    }

    /// Makes libcurl sign the request. `reset` removes the signature.
    private func sign(_ signature: RequestSignature) -> Bool {
        [
            ccurl_set_string(handle, CURLOPT_AWS_SIGV4, "aws:amz:\(signature.region):s3"),
            ccurl_set_string(handle, CURLOPT_USERNAME, signature.keyID),
            ccurl_set_string(handle, CURLOPT_PASSWORD, signature.secret),
        ].allSatisfy { $0 == CURLE_OK }
    }

    private func trust(_ file: String) -> [CURLcode] {
        // Otherwise libcurl would also trust the system's folder of certificate authorities.
        [ccurl_set_string(handle, CURLOPT_CAINFO, file), ccurl_set_string(handle, CURLOPT_CAPATH, nil)]
    }

    /// Releases the transfer, so that the handle can be reused.
    func reset() {
        let isSpecial =
            transfer.map {
                $0.hop.host != nil || $0.request.signature != nil || $0.request.method != "GET"
            } ?? false
        if isSpecial || addresses != nil || !isConfigured {
            curl_easy_reset(handle)
            isConfigured = false
        }
        curl_slist_free_all(addresses)
        addresses = nil
        transfer = nil
        (status, ownPort) = (nil, 0)
    }

    /// Returns whether the look-up of the transfer's host may begin.
    fileprivate func startsLookUp() -> Bool {
        guard let transfer else { return false }
        // An IP address needs no look-up thread.
        guard !transfer.usesProxy, AddressPolicy.named(transfer.request.url).isEmpty else { return true }
        let host = transfer.request.url.host
        if let problem = loop.lookUps.refusal(of: host, now: SystemClock.monotonic.seconds) {
            return transfer.fail(.unresolvable, problem)
        }
        transfer.isResolving = true
        return true
    }

    /// Returns whether the transfer may continue with the connected peer.
    fileprivate func admits(_ peer: UnsafePointer<CChar>, port: Int32) -> Bool {
        if transfer?.isAdmitted == true { return true }
        if let admitted, admitted.port == port, strcmp(admitted.peer, peer) == 0 { return true }
        let text = String(cString: peer)
        guard let transfer, transfer.admits(IPAddress(text), port: Int(port)) else { return false }
        admitted = (Array(text.utf8CString), port)
        return true
    }

    /// Returns the number of request body bytes that the peer has acknowledged, and whether more bytes are in flight.
    ///
    /// - Parameter socket: nil if libcurl is not waiting for a socket.
    func sending(over socket: Int32?) -> (bytes: Int, isUnderWay: Bool) {
        var (sent, queued) = (0, Int32(0))
        _ = ccurl_get_long(handle, CURLINFO_SIZE_UPLOAD_T, &sent)
        // Bytes that libcurl has sent may stay in the kernel's buffer for a long time on a slow line (tcp(7),
        // SIOCOUTQ).
        if let socket { _ = ioctl(socket, UInt(TIOCOUTQ), &queued) }
        return (sent - Int(queued), queued > 0)
    }

    private func milliseconds(_ seconds: Double) -> Int { Int(min(max(seconds * 1000, 1), 86_400_000)) }
}

/// CURL_HTTP_VERSION_2TLS and CURL_HTTP_VERSION_1_1, which are members of an anonymous enumeration.
private let httpVersion2TLS = 4
private let httpVersion11 = 2
/// CURL_SSLVERSION_TLSv1_2, a member of an anonymous enumeration. It requires at least TLS 1.2 (RFC 8996).
private let tlsVersion12 = 6

private func easy(_ context: UnsafeMutableRawPointer?) -> CurlEasy? {
    context.map { Unmanaged<CurlEasy>.fromOpaque($0).takeUnretainedValue() }
}

/// CURLOPT_HEADERFUNCTION: receives one line at a time. Returning a different number of bytes aborts the transfer.
private func receiveLine(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let transfer = easy(context)?.transfer else { return 0 }
    let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
    return transfer.receive(line: line) ? line.count : -1
}

/// CURLOPT_WRITEFUNCTION: receives a piece of the body, at most 16 kB.
private func receiveBody(
    _ bytes: UnsafeMutablePointer<CChar>?, _ size: Int, _ count: Int, _ context: UnsafeMutableRawPointer?
) -> Int {
    guard let bytes, let easy = easy(context), let transfer = easy.transfer else { return 0 }
    let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
    if transfer.mustRedeliver() { return Int(CURL_WRITEFUNC_PAUSE) }
    let isTaken = transfer.receive(body: piece)
    if let write = transfer.nextWrite() { easy.loop.run(write, of: transfer) }
    return isTaken ? piece.count : -1
}

/// CURLOPT_RESOLVER_START_FUNCTION: called before a name is looked up, unless libcurl has cached its addresses.
private func startLookUp(
    _ state: UnsafeMutableRawPointer?, _ reserved: UnsafeMutableRawPointer?, _ context: UnsafeMutableRawPointer?
) -> Int32 {
    easy(context)?.startsLookUp() == true ? 0 : 1
}

/// CURLOPT_OPENSOCKETFUNCTION: called with every resolved address just before connecting. The address that is checked
/// is therefore the address that is connected to, however the URL spells it.
private func openSocket(
    _ context: UnsafeMutableRawPointer?, _ purpose: curlsocktype, _ address: UnsafeMutablePointer<curl_sockaddr>?
) -> curl_socket_t {
    guard let transfer = easy(context)?.transfer, let address else { return -1 }
    transfer.isResolving = false
    let closeOnExec = Int32(SOCK_CLOEXEC.rawValue)
    if transfer.configuration.unixSocket != nil { return socket(AF_UNIX, address.pointee.socktype | closeOnExec, 0) }
    let (ip, port) = withUnsafePointer(to: &address.pointee.addr) { pointer in
        let raw = UnsafeRawPointer(pointer)
        // `sockaddr_in` and `sockaddr_in6` store the port at the same offset.
        return (IPAddress(pointer), Int(UInt16(bigEndian: raw.loadUnaligned(fromByteOffset: 2, as: UInt16.self))))
    }
    guard transfer.admits(ip, port: port), let ip, transfer.reserveNetworkSlot(ip), transfer.hop.hooks.dials(ip, port)
    else {
        return -1
    }
    let opened = socket(address.pointee.family, address.pointee.socktype | closeOnExec, address.pointee.`protocol`)
    // Otherwise the kernel retransmits unacknowledged data for a quarter of an hour (tcp(7)).
    var limit = UInt32(transfer.configuration.acknowledgementSeconds * 1000)
    _ = setsockopt(opened, Int32(IPPROTO_TCP), TCP_USER_TIMEOUT, &limit, socklen_t(MemoryLayout<UInt32>.size))
    return opened
}

/// CURLOPT_PREREQFUNCTION: called once the connection is established, including for a reused connection, which opens no
/// socket.
private func beforeRequest(
    _ context: UnsafeMutableRawPointer?, _ peer: UnsafeMutablePointer<CChar>?, _ own: UnsafeMutablePointer<CChar>?,
    _ port: Int32, _ ownPort: Int32
) -> Int32 {
    guard let easy = easy(context), let transfer = easy.transfer, let peer, easy.admits(peer, port: port),
        transfer.reserveNetworkSlot(IPAddress(String(cString: peer)))
    else { return CURL_PREREQFUNC_ABORT }
    easy.ownPort = ownPort
    return transfer.connected(now: SystemClock.monotonic.seconds) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
}
