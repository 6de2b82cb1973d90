/// Why a store could not do what it was asked. A miss is never an error.
public struct StoreError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What went wrong, stable across versions; members are only ever added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        public let description: String
        private init(_ description: String) { self.description = description }

        /// The folder or a file in it cannot be created or opened, or belongs to another program.
        public static let unavailable = Code("unavailable")
        /// The folder was written by a newer version of this program; nothing was changed.
        public static let newerVersion = Code("newerVersion")
        /// The file system is full, or has less free space than the store is to leave; nothing was stored.
        public static let full = Code("full")
        /// Reading or writing failed; nothing was stored.
        public static let io = Code("io")
        /// Another process held the index longer than the busy timeout.
        public static let busy = Code("busy")
        /// The index is damaged and could not be rebuilt.
        public static let damaged = Code("damaged")
        /// A key or digest is not 64 lower-case hexadecimal digits, or a length does not match its body.
        public static let invalid = Code("invalid")
        /// The store did not answer within its deadline.
        public static let timedOut = Code("timedOut")
        /// The store was not asked: it keeps failing, or too many calls are in progress.
        public static let skipped = Code("skipped")
        /// The store has been closed.
        public static let closed = Code("closed")
    }

    /// What went wrong.
    public var code: Code
    /// What happened and what would help.
    public var message: String
    /// The file or folder concerned; empty if there is none.
    public var path: String

    public init(_ code: Code, _ message: String, path: String = "") {
        self.code = code
        self.message = message
        self.path = path
    }

    public var description: String { path.isEmpty ? message : "\(message) (\(path))" }
}
