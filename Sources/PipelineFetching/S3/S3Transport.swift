import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization

/// Fetches objects from S3-compatible stores. Signs requests for `s3://BUCKET/KEY` and explains a store's errors. The
/// https transport provides limits, retries and connections.
package final class S3Transport: Transport {
    private let base: any Transport
    private let configuration: S3Configuration
    private let credentials: S3CredentialChain
    /// The regions that stores have named.
    private let regions = Mutex<[String: String]>([:])

    /// - Parameters:
    ///   - base: the transport that fetches the http(s) URLs.
    ///   - environment: a closure that returns a variable of the process, or nil or an empty string if it is not set.
    package init(
        _ base: any Transport, _ configuration: S3Configuration,
        environment: @escaping @Sendable (String) -> String? = { getenv($0).map { String(cString: $0) } }
    ) {
        self.base = base
        self.configuration = configuration
        credentials = S3CredentialChain(base, environment, asksInstance: configuration.asksInstance)
    }

    /// Does nothing, because the owner of the base transport shuts it down.
    package func shutdown() async {}

    package func fetch(
        _ request: FetchRequest, onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> FetchedResponse {
        guard request.method == "GET" else {
            throw FetchError(.protocolViolation, request.url, "only GET is supported for objects of a store")
        }
        let store = configuration.store(of: request.url.host)
        let (response, failure, isSigned) = try await exchange(request, onProgress)
        return answer(response, to: request, store, failure, isSigned: isSigned)
    }

    /// Performs a request. Repeats it at most once in the region that the store names, and at most once with
    /// credentials other than the refused ones.
    func exchange(
        _ request: FetchRequest, _ onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)? = nil
    ) async throws(FetchError) -> (FetchedResponse, S3Failure?, isSigned: Bool) {
        let bucket = request.url.host
        let store = configuration.store(of: bucket)
        var region = regions.withLock { $0[bucket] } ?? store.region ?? credentials.region
        var signature = try await credentials.signature(store.credentials, region: region)
        var (hasMoved, hasRenewed) = (false, false)
        while true {
            let (response, failure) = try await ask(request, store, region, signature, onProgress)
            if !hasMoved, let right = failure?.region ?? Self.region(in: response), right != region,
                [301, 307, 400, 403].contains(response.status)
            {
                hasMoved = true
                region = right
                signature?.region = right
            } else if !hasRenewed, failure?.isOfCredentials == true, let refused = signature,
                let renewed = try await credentials.renewed(refused, store.credentials)
            {
                hasRenewed = true
                signature = renewed
            } else {
                // A region is remembered only if it worked.
                if hasMoved, failure == nil || response.status == 404 { regions.withLock { $0[bucket] = region } }
                return (response, failure, signature != nil)
            }
        }
    }

    private func ask(
        _ request: FetchRequest, _ store: S3Configuration.Store, _ region: String, _ signature: RequestSignature?,
        _ onProgress: (@Sendable (_ received: Int, _ expected: Int?) -> Void)?
    ) async throws(FetchError) -> (FetchedResponse, S3Failure?) {
        var asked = request
        asked.url = try Self.url(of: request.url, store, region)
        asked.source = request.source ?? request.url
        asked.isToStore = true
        // A signature is valid for one host, and S3 has its own way of saying where a bucket has moved.
        asked.followsRedirects = false
        asked.signature = signature
        if !request.body.isEmpty { asked.signature?.digest = sha256Hex(request.body) }
        asked.isTrusted = store.endpoint != nil
        asked.fields.removeAll { FieldLines.isSameName($0.name, "authorization") }
        asked.fields += store.fields ?? []
        let response = try await base.fetch(asked, onProgress: onProgress)
        return (response, response.status < 300 || response.status == 304 ? nil : S3Failure(response.body))
    }

    /// Returns the response, attributed to the object regardless of the URL that it came from.
    private func answer(
        _ response: FetchedResponse, to request: FetchRequest, _ store: S3Configuration.Store, _ failure: S3Failure?,
        isSigned: Bool
    ) -> FetchedResponse {
        var answer = response
        answer.finalURL = request.url
        answer.problem = failure?.remedy(response.status, bucket: request.url.host, isSigned: isSigned)
        let saysNothing = response.fields.first("cache-control") == nil && response.fields.first("expires") == nil
        if let maxAge = store.maxAge, saysNothing, [200, 206, 304].contains(response.status) {
            answer.fields.append(HeaderField("Cache-Control", "max-age=\(maxAge.components.seconds)"))
        }
        return answer
    }

    private static func region(in response: FetchedResponse) -> String? {
        response.status < 300 ? nil : response.fields.first("x-amz-bucket-region").flatMap(S3Failure.region)
    }

    /// Returns the http(s) URL of an object.
    static func url(
        of object: SourceURL, _ store: S3Configuration.Store, _ region: String
    ) throws(FetchError) -> SourceURL {
        let endpoint = store.endpoint ?? "https://s3.\(region).amazonaws.com"
        do throws(SourceError) {
            let base = try SourceURL(endpoint)
            let bucket = object.host
            // A certificate for *.HOST does not cover a bucket with dots in its name.
            let isPath = store.pathStyle ?? (store.endpoint != nil || bucket.contains("."))
            let authority = base.origin.dropFirst(base.scheme.count + 3)
            let place = isPath ? "\(base.scheme)://\(authority)/\(bucket)" : "\(base.scheme)://\(bucket).\(authority)"
            return try SourceURL(place + object.path + (object.query.map { "?" + $0 } ?? ""))
        } catch {
            throw FetchError(
                .transport,
                "fetching \(object): the endpoint of the bucket (`endpoint` of the setting `s3`): \(error.message)")
        }
    }
}
