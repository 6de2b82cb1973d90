package import HTTPCaching
import PipelineSupport

extension S3Transport: FolderStore {
    /// Lists objects. The store limits a page to 1,000 keys.
    package func list(
        _ folder: SourceURL, after next: String? = nil, limit: Int? = nil
    ) async throws(FetchError) -> FolderListing {
        let (response, failure, isSigned) = try await listing(of: folder, after: next, limit: limit)
        if response.status == 200, let listing = S3Listing(response.body) { return listing }
        throw Self.error("listing", folder, response, failure, isSigned, "s3:ListBucket")
    }

    /// Throws if the bucket does not exist or the store refuses the credentials. Credentials that may not list the
    /// bucket may still be able to write.
    package func check(_ folder: SourceURL) async throws(FetchError) {
        let (response, failure, isSigned) = try await listing(of: folder, after: nil, limit: 1, asOutput: true)
        if response.status == 200 || (isSigned && failure?.code == "AccessDenied") { return }
        throw Self.error("writing to", folder, response, failure, isSigned, "s3:PutObject")
    }

    package func holds(
        _ object: SourceURL, _ bytes: [UInt8], _ fields: [HeaderField]
    ) async throws(FetchError) -> Bool? {
        let response = try await self.object(object, firstByteOnly: true)
        if response.status == 404 { return nil }
        // The entity tag is not an MD5 if the store encrypts objects with a key management service.
        let isSame =
            response.fields.first("etag") == "\"\(hex(md5(bytes)))\""
            || response.fields.first("x-amz-meta-sha256") == sha256Hex(bytes)
        // An empty object has no first byte, so the status is 416.
        return response.status != 416 && isSame && fields.allSatisfy { response.fields.first($0.name) == $0.value }
    }

    /// Writes an object with a checksum that the store verifies.
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
        // The parameters are sorted, as the signature requires.
        let query = [
            next.map { "continuation-token=" + encoded(Array($0.utf8)) }, "encoding-type=url", "list-type=2",
            limit.map { "max-keys=\($0)" },
            "prefix=" + encoded(SourceURL.percentDecoded(String(folder.path.dropFirst()))),
        ].compactMap { $0 }.joined(separator: "&")
        let url = SourceURL(bucket: folder.host, path: "/", query: query)
        var request = FetchRequest(url: url, maxBytes: 32_000_000)
        request.source = asOutput ? Self.output(folder).source : folder
        return try await exchange(request)
    }

    /// Returns a request for an output, to which the source policy does not apply.
    static func output(_ object: SourceURL, fields: [HeaderField] = []) -> FetchRequest {
        var request = FetchRequest(url: object, fields: fields)
        request.source = SourceURL(scheme: "output", name: object.normalized)
        return request
    }

    static func error(
        _ action: String, _ url: SourceURL, _ response: FetchedResponse, _ failure: S3Failure?, _ isSigned: Bool,
        _ permission: String?
    ) -> FetchError {
        let remedy = failure?.remedy(
            response.status, bucket: url.host, isSigned: isSigned, permission: permission)
        let answer =
            failure == nil ? "the store's response is not a valid listing" : "the store answered \(response.status)"
        return FetchError(
            response.status == 404 ? .missing : .transport,
            "\(action) \(url): \(answer)" + (remedy.map { ": " + $0 } ?? ""))
    }
}
