import CCurl
import Glibc

extension FetchError {
    /// Translates libcurl's status for a transfer. Returns nil if the transfer succeeded. All interpretation of status
    /// codes happens here.
    init?(_ status: CURLcode, _ transfer: Transfer, handle: UnsafeMutableRawPointer) {
        guard status != CURLE_OK else { return nil }
        let url = transfer.request.url
        if let failure = transfer.failure {
            self = failure
            return
        }
        let text = String(cString: curl_easy_strerror(status))
        var (systemError, connectStatus) = (0, 0)
        ccurl_get_long(handle, CURLINFO_OS_ERRNO, &systemError)
        ccurl_get_long(handle, CURLINFO_HTTP_CONNECTCODE, &connectStatus)
        if transfer.usesProxy, connectStatus >= 300 {
            self = .byProxy(connectStatus, transfer)
            return
        }
        let proxy = transfer.usesProxy ? transfer.configuration.proxy : nil
        switch status {
        case CURLE_COULDNT_RESOLVE_PROXY:
            self.init(
                .unresolvable, url,
                "the host name of the proxy \(proxy?.description ?? "") cannot be resolved (`fetch.proxy`); check the name"
            )
        case CURLE_COULDNT_RESOLVE_HOST:
            self.init(
                .unresolvable, url,
                "the host name `\(url.host)` cannot be resolved; check the name" + transfer.proxyNote)
        case CURLE_COULDNT_CONNECT, CURLE_ABORTED_BY_CALLBACK:
            if !transfer.refused.isEmpty {
                self = .refused(transfer.refused, url)
            } else if let proxy {
                self.init(
                    .unreachable, url, "cannot connect to the proxy \(proxy) (`fetch.proxy`); check that it is running")
            } else if let path = transfer.configuration.unixSocket {
                self.init(.unreachable, url, "cannot connect to unix:\(path); check that the server is running")
            } else {
                self.init(
                    .unreachable, url,
                    "cannot connect to \(url.host) port \(url.port); check that the origin is running"
                        + transfer.proxyNote)
            }
        case CURLE_OPERATION_TIMEDOUT:
            self.init(.timeout, url, "timed out")
        case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER,
            CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR, CURLE_SSL_ENGINE_INITFAILED, CURLE_SSL_INVALIDCERTSTATUS,
            CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_CRL_BADFILE, CURLE_USE_SSL_FAILED, CURLE_SSL_CLIENTCERT:
            self.init(
                .tls, url,
                "\(text); check that the certificate is valid for `\(url.host)` and issued by a trusted authority")
        case CURLE_PARTIAL_FILE:
            self.init(.truncated, url, "the body ended before it reached its announced length")
        case CURLE_OUT_OF_MEMORY where !transfer.hasHead:
            // libcurl reports this status if a line exceeds its buffer of 100 kB.
            self.init(.protocolViolation, url, "the origin sent a field line longer than 100 kB")
        case CURLE_RECV_ERROR where systemError == 0 && url.scheme == "http":
            // There is no socket error, so libcurl could not parse the chunks, or the response header was too large.
            self.init(
                .protocolViolation, url, "the origin sent malformed chunks, or a response header that is too long")
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2, CURLE_BAD_CONTENT_ENCODING:
            self.init(.protocolViolation, url, "the origin's response is not valid HTTP (\(text))")
        case CURLE_GOT_NOTHING:
            self.init(.transport, url, "the origin closed the connection without a response")
        default:
            self.init(.transport, url, "the connection failed (\(text))")
        }
    }

    /// Returns the error for a request that the proxy itself refused.
    static func byProxy(_ status: Int, _ transfer: Transfer) -> FetchError {
        let proxy = transfer.configuration.proxy?.description ?? ""
        let remedy = status == 407 ? "; check the user and password in `fetch.proxy`" : " (`fetch.proxy`)"
        return FetchError(.unreachable, transfer.request.url, "the proxy \(proxy) answered \(status)\(remedy)")
    }
}

extension Transfer {
    /// The hint for a connection error if the environment names a proxy. Otherwise, the string is empty.
    var proxyNote: String {
        guard configuration.proxy == nil, configuration.unixSocket == nil else { return "" }
        let names = [request.url.scheme + "_proxy", "all_proxy"].flatMap { [$0, $0.uppercased()] }
        let name = names.first { name in getenv(name).map { $0.pointee != 0 } ?? false }
        return name.map { "; the proxy in the environment variable `\($0)` is not used; set `fetch.proxy`" } ?? ""
    }
}
