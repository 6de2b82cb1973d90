/// The operations that `ObjectTier` needs from an object store: it has a flat key space and reads and writes complete
/// objects. Conditional writes are not needed.
package protocol ObjectStore: Sendable {
    /// Reads an object.
    ///
    /// - Parameter isLong: whether the body may be returned as a file.
    func get(_ key: String, isLong: Bool) async throws(StoreError) -> ObjectAnswer
    /// Returns whether an object exists. Does not read its body.
    func holds(_ key: String) async throws(StoreError) -> Bool
    /// Writes an object, replacing the object under the key.
    ///
    /// - Parameter type: the media type, with which other tools can show the object.
    func put(_ key: String, _ body: [UInt8], type: String) async throws(StoreError)
    /// Removes an object if it exists.
    func delete(_ key: String) async throws(StoreError)
    /// Lists the objects whose keys begin with `prefix`, in pages of at most 1,000 objects.
    ///
    /// - Parameter next: the value of `next` in the previous page, or nil to read the first page.
    func list(_ prefix: String, after next: String?) async throws(StoreError) -> ObjectPage
}

/// A store's response for a key.
package struct ObjectAnswer: Sendable {
    /// The body, or nil if the object does not exist.
    package var body: EntryBody?
    /// The number of seconds since the object was written, measured by the store's own clock with a resolution of one
    /// second, or nil if the store does not report it.
    package var age: Double?
    /// The number of seconds by which the store's clock is ahead of this machine's clock.
    package var clockOffset: Double

    package init(body: EntryBody?, age: Double? = nil, clockOffset: Double = 0) {
        (self.body, self.age, self.clockOffset) = (body, age, clockOffset)
    }
}

/// A page of a listing, in byte order of keys.
package struct ObjectPage: Sendable {
    package var objects: [(key: String, size: Int)]
    /// The position at which the next page begins, or nil if this is the last page.
    package var next: String?

    package init(objects: [(key: String, size: Int)], next: String?) { (self.objects, self.next) = (objects, next) }
}
