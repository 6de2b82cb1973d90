/// What `ObjectTier` asks of an object store: a flat space of keys, whole objects, nothing conditional.
package protocol ObjectStore: Sendable {
    /// Reads an object.
    ///
    /// - Parameter isLong: whether the body may come as a file.
    func get(_ key: String, isLong: Bool) async throws(StoreError) -> ObjectAnswer
    /// Whether there is an object; its body is not read.
    func holds(_ key: String) async throws(StoreError) -> Bool
    /// Writes an object in place of the one under the key.
    ///
    /// - Parameter type: the media type that people's tools show it by.
    func put(_ key: String, _ body: [UInt8], type: String) async throws(StoreError)
    /// Removes an object, if it is there.
    func delete(_ key: String) async throws(StoreError)
    /// The objects whose keys begin so, a page of at most 1,000 at a time.
    ///
    /// - Parameter next: that of the page before; nil for the first.
    func list(_ prefix: String, after next: String?) async throws(StoreError) -> ObjectPage
}

/// What a store says of a key.
package struct ObjectAnswer: Sendable {
    /// Nil if there is no such object.
    package var body: EntryBody?
    /// Seconds since the object was written, by the store's own clock, whose resolution is a second; nil if the store does
    /// not say.
    package var age: Double?
    /// Seconds by which the store's clock is ahead of this machine's.
    package var clockOffset: Double

    package init(body: EntryBody?, age: Double? = nil, clockOffset: Double = 0) {
        (self.body, self.age, self.clockOffset) = (body, age, clockOffset)
    }
}

/// A page of a listing, in byte order of keys.
package struct ObjectPage: Sendable {
    package var objects: [(key: String, size: Int)]
    /// Where the next page begins; nil if this is the last one.
    package var next: String?

    package init(objects: [(key: String, size: Int)], next: String?) { (self.objects, self.next) = (objects, next) }
}
