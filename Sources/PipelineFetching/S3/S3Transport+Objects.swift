import HTTPCaching

// Operations for a cache in a bucket, other than listing and writing (`S3Transport+Batch`).
extension S3Transport {
    /// Returns the store's response for an object: 200 (206 if only its first byte was requested) or 404.
    ///
    /// - Parameter firstByteOnly: whether it is enough to know that the object exists. For an empty object, the status
    ///   is 416.
    package func object(
        _ object: SourceURL, acceptsFile: Bool = false, firstByteOnly: Bool = false
    ) async throws(FetchError) -> FetchedResponse {
        // Use GET instead of HEAD, because errors of HEAD have no body that explains them.
        var request = Self.output(object, fields: firstByteOnly ? [HeaderField("Range", "bytes=0-0")] : [])
        request.acceptsFile = acceptsFile
        let (response, failure, isSigned) = try await exchange(request)
        switch response.status {
        case 200, 206, 416: return response
        case 404 where failure?.code != "NoSuchBucket": return response
        default: throw Self.error("reading", object, response, failure, isSigned, nil)
        }
    }

    /// Removes an object if it exists.
    package func remove(_ object: SourceURL) async throws(FetchError) {
        var request = Self.output(object)
        request.method = "DELETE"
        let (response, failure, isSigned) = try await exchange(request)
        guard [200, 204].contains(response.status) || (response.status == 404 && failure?.code != "NoSuchBucket") else {
            throw Self.error("removing", object, response, failure, isSigned, "s3:DeleteObject")
        }
    }
}
