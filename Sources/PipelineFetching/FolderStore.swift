package import HTTPCaching

/// A store with folders of objects that a batch can list and write, such as an S3 bucket.
///
/// All folders come from `SourceURL(stored:isFolder:)`.
package protocol FolderStore: Transport {
    /// Returns one page of the objects in a folder.
    ///
    /// - Parameters:
    ///   - next: the `FolderListing.next` of the previous page, or nil to request the first page.
    ///   - limit: the maximum number of objects per page, or nil to use the store's limit.
    func list(_ folder: SourceURL, after next: String?, limit: Int?) async throws(FetchError) -> FolderListing

    /// Throws if a batch cannot write to a folder.
    func check(_ folder: SourceURL) async throws(FetchError)

    /// Returns whether an object has these bytes and header fields, or nil if the object does not exist.
    func holds(_ object: SourceURL, _ bytes: [UInt8], _ fields: [HeaderField]) async throws(FetchError) -> Bool?

    /// Writes an object. The object becomes visible only once it is complete.
    func put(_ bytes: [UInt8], to object: SourceURL, _ fields: [HeaderField]) async throws(FetchError)
}

/// One page of the objects in a folder.
package struct FolderListing: Sendable, Hashable {
    package struct Object: Sendable, Hashable {
        /// The path in the bucket, without percent-encoding.
        package var key: String
        /// The size in bytes.
        package var size: Int
    }

    package var objects: [Object] = []
    /// Where the next page begins, or nil if this is the last page.
    package var next: String?
}

extension SourceURL {
    /// Parses the name of an object or of a folder of objects. Returns nil if no store uses the scheme.
    package init?(stored text: String, isFolder: Bool = false) throws(SourceError) {
        try self.init(s3: text, isFolder: isFolder)
    }

    /// Returns the name of an object in this folder's bucket.
    package func stored(_ key: String) -> String {
        "\(scheme)://\(host)/" + Self.canonical(Array(key.utf8), keeping: UInt8(ascii: "/"))
    }
}
