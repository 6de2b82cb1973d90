import Dispatch
import Pipeline
import PipelineSupport
import Synchronization

/// Yields every object below a folder of a bucket, in byte order of keys, as `FolderReader` does files.
///
/// Holds one page of keys at a time, at most 1,000.
final class BucketReader: EntryReader {
    private let store: S3Transport
    private let folder: SourceURL
    /// The bytes of the keys that the folder takes.
    private let prefix: Int
    /// The argument, if it may also name an object.
    private var object: String?
    /// Where the batch writes, if that is below the folder.
    private let excluded: String?
    private let rule: FolderRule?
    private let isInterrupted: @Sendable () -> Bool
    /// The rest of the page, last key first.
    private var page: [S3Listing.Object] = []
    private var token: String?
    private var hasEnded = false
    /// Pages without a key in a row. A store may send some while it skips what was deleted.
    private var emptyPages = 0
    private static let mostEmptyPages = 100
    /// The longest key of S3, in bytes.
    private static let longestKey = 1_024

    /// The folder that an argument names: a bucket, what ends in `/`, and a last segment without a dot, which may be an
    /// object too; nil for other arguments.
    static func folder(_ argument: String) -> SourceURL? {
        let parts = argument.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let last = parts.count < 2 ? "" : parts[1].split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.utf8.contains(UInt8(ascii: ".")) else { return nil }
        // What is malformed is reported as a source.
        return try? SourceURL(s3: argument, isFolder: true)
    }

    init(
        _ folder: SourceURL, in store: S3Transport, named argument: String, excluding excluded: [String],
        rule: FolderRule?,
        isInterrupted: @escaping @Sendable () -> Bool
    ) {
        self.store = store
        self.folder = folder
        self.rule = rule
        self.isInterrupted = isInterrupted
        prefix = SourceURL.percentDecoded(folder.path).count - 1
        let isObject = prefix > 0 && argument.utf8.last != UInt8(ascii: "/")
        object = isObject ? argument : nil
        self.excluded = excluded.compactMap { try? SourceURL(s3: $0, isFolder: true)?.normalised }.first {
            $0 != folder.normalised && $0.utf8.starts(with: folder.normalised.utf8)
        }
    }

    func next() -> BatchEntry? {
        while true {
            while let object = page.popLast() {
                if let entry = entry(object) { return entry }
            }
            guard !hasEnded, !isInterrupted() else { return nil }
            let result = waitOutside(until: isInterrupted) { [store, folder, token] in
                await Result { () async throws(FetchError) in try await store.list(folder, after: token) }
            }
            if isInterrupted() { return nil }
            let named = object
            object = nil
            switch result {
            case .success(let listing) where listing.next != nil && listing.next == token:
                return ending("begins again at the same place")
            case .success(let listing):
                emptyPages = listing.objects.isEmpty ? emptyPages + 1 : 0
                if emptyPages > Self.mostEmptyPages { return ending("has \(emptyPages) pages without a key in a row") }
                page = listing.objects.reversed()
                token = listing.next
                hasEnded = token == nil
                if let named, hasEnded, page.isEmpty { return .source(BatchSource(source: named)) }
            case .failure(let error):
                hasEnded = true
                // Credentials that may not list a bucket may still read the object.
                if let named { return .source(BatchSource(source: named)) }
                return .failure(
                    source: folder.normalised, BatchFailure(code: PipelineError(error).code, message: error.message))
            }
        }
    }

    /// Ends a list that no working store sends.
    private func ending(_ reason: String) -> BatchEntry {
        (hasEnded, page) = (true, [])
        return .failure(
            source: folder.normalised,
            BatchFailure(code: .fetchFailed, message: "the store's list of \(folder) \(reason)"))
    }

    /// Why an object is not taken: its key would make names that the user did not ask for.
    private func refusal(of key: String) -> String? {
        let folder = SourceURL.percentDecoded(String(folder.path.dropFirst()))
        guard key.utf8.starts(with: folder) else { return "the store lists it, but it is not below \(self.folder)" }
        guard !key.pathParts.contains(where: { [".", ".."].contains($0) }) else { return "its key has dot segments" }
        // Control characters beyond ASCII, too.
        return key.unicodeScalars.contains { $0.properties.generalCategory == .control }
            ? "its key has control characters" : nil
    }

    private func entry(_ object: S3Listing.Object) -> BatchEntry? {
        guard object.key.utf8.count <= Self.longestKey else {
            return ending("has a key of \(object.key.utf8.count) bytes; keys have at most 1,024 bytes")
        }
        // Other programs keep empty folders as such objects.
        if object.size == 0, object.key.utf8.last == UInt8(ascii: "/") { return nil }
        let source = "s3://\(folder.host)/" + SourceURL.canonical(Array(object.key.utf8), keeping: UInt8(ascii: "/"))
        if let excluded, source.utf8.starts(with: excluded.utf8) { return nil }
        if let reason = refusal(of: object.key) {
            return .failure(source: source, BatchFailure(code: .badSource, message: "\(source): \(reason)"))
        }
        do throws(SourceError) {
            _ = try SourceURL(s3: source)
        } catch {
            return .failure(source: source, BatchFailure(code: .badSource, message: error.message))
        }
        let name = String(decoding: object.key.utf8.dropFirst(prefix), as: UTF8.self)
        if let reason = rule?.reason(toLeaveOut: name) { return .leftOut(source: source, LeftOut(reason)) }
        let parts = name.splitAtLastSlash
        if AtomicOutput.isTemporary(parts?.name ?? name) { return nil }
        return .source(
            BatchSource(source: source, folder: parts?.folder ?? "", isFound: true, length: object.size))
    }
}

/// Waits for a task on a thread of our own, which may block.
///
/// - Parameter isInterrupted: polled while waiting; true cancels the task.
func waitOutside<Value: Sendable>(
    until isInterrupted: () -> Bool = { false }, _ work: @escaping @Sendable () async -> Value
) -> Value {
    let box = WaitedFor<Value>()
    let isDone = DispatchSemaphore(value: 0)
    let task = Task {
        let value = await work()
        box.value.withLock { $0 = value }
        isDone.signal()
    }
    while isDone.wait(timeout: .now() + .milliseconds(100)) == .timedOut {
        if isInterrupted() { task.cancel() }
    }
    guard let value = box.value.withLock({ $0 }) else { preconditionFailure("signalled without a value") }
    return value
}

private final class WaitedFor<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}
