/// Describes why a `CacheTier` could not find, store or purge entries. A custom tier throws it. A miss is never an
/// error.
public struct StoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The kind of failure. The values are stable, and later versions may add members.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String
        public init(rawValue: String) { self.rawValue = rawValue }
        public var description: String { rawValue }

        /// The folder or a file in it cannot be created or opened, or belongs to a different program.
        public static let unavailable = Code(rawValue: "unavailable")
        /// A newer version of this program wrote the folder. Nothing was changed.
        public static let newerVersion = Code(rawValue: "newerVersion")
        /// The file system is full, or has less free space than the store must leave. The entry was not stored.
        public static let full = Code(rawValue: "full")
        /// Reading or writing failed. Nothing was stored.
        public static let io = Code(rawValue: "io")
        /// Another process held the index longer than the busy timeout.
        public static let busy = Code(rawValue: "busy")
        /// The index is damaged and could not be rebuilt.
        public static let damaged = Code(rawValue: "damaged")
        /// A key or digest is not 64 lower-case hexadecimal digits, or a length does not match its body.
        public static let invalid = Code(rawValue: "invalid")
        /// The store did not respond within its deadline.
        public static let timedOut = Code(rawValue: "timedOut")
        /// The store was not called, because it keeps failing or too many calls are in progress.
        public static let skipped = Code(rawValue: "skipped")
        /// The store has been closed.
        public static let closed = Code(rawValue: "closed")
    }

    /// The kind of failure.
    public var code: Code
    /// A description of the failure and how to fix it.
    public var message: String
    /// The path of the file or folder, or an empty string if the failure does not concern a file.
    public var path: String

    /// Creates an error. `path` is the file or folder that failed; empty if there is none.
    public init(_ code: Code, _ message: String, path: String = "") {
        self.code = code
        self.message = message
        self.path = path
    }

    public var description: String { path.isEmpty ? message : "\(message) (\(path))" }
}
