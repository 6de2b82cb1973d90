package import HTTPCaching
import PipelineSupport

// What a batch does with a bucket besides reading its objects.
extension S3Transport {
    /// One page of the objects below a folder.
    ///
    /// - Parameters:
    ///   - folder: from `SourceURL(s3:isFolder:)`.
    ///   - next: that of the page before; nil for the first.
    ///   - limit: the most keys of a page; the store's limit, which is 1,000, by default.
    package func list(
        _ folder: SourceURL, after next: String? = nil, limit: Int? = nil
    ) async throws(FetchError) -> S3Listing {
        let (response, failure, isSigned) = try await listing(of: folder, after: next, limit: limit)
        if response.status == 200, let listing = S3Listing(response.body) { return listing }
        throw Self.error("listing", folder, response, failure, isSigned, "s3:ListBucket")
    }

    /// Throws if a batch cannot write below a folder: the bucket does not exist, or the store refuses the credentials.
    /// Credentials that may not list the bucket may still write there.
    package func check(_ folder: SourceURL) async throws(FetchError) {
        let (response, failure, isSigned) = try await listing(of: folder, after: nil, limit: 1, asOutput: true)
        if response.status == 200 || (isSigned && failure?.code == "AccessDenied") { return }
        throw Self.error("writing to", folder, response, failure, isSigned, "s3:PutObject")
    }

    /// Whether an object has these bytes and says the same of them; nil if there is no such object.
    package func holds(
        _ object: SourceURL, _ bytes: [UInt8], _ fields: [HeaderField]
    ) async throws(FetchError) -> Bool? {
        // Its first byte instead of HEAD, whose errors do not say what is wrong.
        let request = Self.output(object, fields: [HeaderField("Range", "bytes=0-0")])
        let (response, failure, isSigned) = try await exchange(request)
        switch response.status {
        case 404 where failure?.code != "NoSuchBucket": return nil
        case 200, 206:
            // The entity tag is no MD5 where the store encrypts with keys of a service.
            let isSame =
                response.fields.first("etag") == "\"\(hex(md5(bytes)))\""
                || response.fields.first("x-amz-meta-sha256") == sha256Hex(bytes)
            return isSame && fields.allSatisfy { response.fields.first($0.name) == $0.value }
        case 416: return false  // An empty one.
        default: throw Self.error("reading", object, response, failure, isSigned, nil)
        }
    }

    /// Writes an object, with a checksum that the store compares.
    package func put(_ bytes: [UInt8], to object: SourceURL, _ fields: [HeaderField]) async throws(FetchError) {
        let sums = [
            HeaderField("Content-MD5", Base64.text(md5(bytes))), HeaderField("x-amz-meta-sha256", sha256Hex(bytes)),
        ]
        var request = Self.output(object, fields: fields + sums)
        (request.method, request.body) = ("PUT", bytes)
        let (response, failure, isSigned) = try await exchange(request)
        guard response.status == 200 else {
            throw Self.error("writing", object, response, failure, isSigned, "s3:PutObject")
        }
    }

    private func listing(
        of folder: SourceURL, after next: String?, limit: Int?, asOutput: Bool = false
    ) async throws(FetchError) -> (FetchedResponse, S3Failure?, isSigned: Bool) {
        func encoded(_ bytes: [UInt8]) -> String { SourceURL.canonical(bytes, keeping: nil) }
        // Sorted, as they are signed.
        let query = [
            next.map { "continuation-token=" + encoded(Array($0.utf8)) }, "encoding-type=url", "list-type=2",
            limit.map { "max-keys=\($0)" },
            "prefix=" + encoded(SourceURL.percentDecoded(String(folder.path.dropFirst()))),
        ].compactMap { $0 }.joined(separator: "&")
        let url = SourceURL(bucket: folder.host, path: "/", query: query)
        var request = FetchRequest(url: url, byteLimit: 32_000_000)
        request.source = asOutput ? Self.output(folder).source : folder
        return try await exchange(request)
    }

    /// A request about an output, which the policy of sources is not asked about.
    static func output(_ object: SourceURL, fields: [HeaderField] = []) -> FetchRequest {
        var request = FetchRequest(url: object, fields: fields)
        request.source = SourceURL(scheme: "output", name: object.normalised)
        return request
    }

    static func error(
        _ action: String, _ url: SourceURL, _ response: FetchedResponse, _ failure: S3Failure?, _ isSigned: Bool,
        _ permission: String?
    ) -> FetchError {
        let remedy = failure?.remedy(
            response.status, bucket: url.host, isSigned: isSigned, permission: permission)
        let answer = failure == nil ? "the store's answer is no list" : "the store answered \(response.status)"
        return FetchError(
            response.status == 404 ? .missing : .transport,
            "\(action) \(url): \(answer)" + (remedy.map { ": " + $0 } ?? ""))
    }
}
