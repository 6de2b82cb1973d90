/// What is kept under a key of a `CacheIndex`; what that is, is a subclass's.
class CacheNode: @unchecked Sendable {
    /// Bytes of an object of this class without a subclass's own part, its allocation's header included.
    static var bytes: Int { 16 + 8 }
}
