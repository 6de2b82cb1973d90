import Dispatch
import Pipeline
import PipelineSupport
import Synchronization

/// Reads every object in a folder of a bucket, in byte order of keys, as `FolderReader` does with files.
///
/// Keeps one page of at most 1,000 keys in memory.
final class BucketReader: EntryReader {
    private let store: any FolderStore
    private let folder: SourceURL
    /// The length of the folder's part of the keys, in bytes.
    private let prefix: Int
    /// The argument, if it may also be the name of an object.
    private var object: String?
    /// The output folder, if it is within this folder.
    private let excluded: String?
    private let rule: FolderRule?
    private let isInterrupted: @Sendable () -> Bool
    /// The remaining objects of the page, in reverse order of keys.
    private var page: [FolderListing.Object] = []
    private var token: String?
    private var hasEnded = false
    /// The number of consecutive pages without a key. A store may return such pages while it skips deleted objects.
    private var emptyPages = 0
    private static let maxEmptyPages = 100
    /// The maximum length of a key, in bytes.
    private static let longestKey = 1_024

    /// Returns the folder that an argument names, or nil if the argument names no folder. A folder is a bucket, a path
    /// that ends in `/`, or a last segment without a dot, which may also be an object.
    static func folder(_ argument: String) -> SourceURL? {
        let parts = argument.dropFirst(5).split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let last = parts.count < 2 ? "" : parts[1].split(separator: "/", omittingEmptySubsequences: false).last ?? ""
        guard !last.utf8.contains(UInt8(ascii: ".")) else { return nil }
        // A malformed name is reported as a source.
        return try? SourceURL(stored: argument, isFolder: true)
    }

    init(
        _ folder: SourceURL, in store: any FolderStore, named argument: String, excluding excluded: [String],
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
        self.excluded = excluded.compactMap { try? SourceURL(stored: $0, isFolder: true)?.normalized }.first {
            $0 != folder.normalized && $0.utf8.starts(with: folder.normalized.utf8)
        }
    }

    func next() -> BatchEntry? {
        while true {
            while let object = page.popLast() {
                if let entry = entry(object) { return entry }
            }
            guard !hasEnded, !isInterrupted() else { return nil }
            let result = waitOutside(until: isInterrupted) { [store, folder, token] in
                await Result { () async throws(FetchError) in try await store.list(folder, after: token, limit: nil) }
            }
            if isInterrupted() { return nil }
            let named = object
            object = nil
            switch result {
            case .success(let listing) where listing.next != nil && listing.next == token:
                return ending("repeats the same page; report this to the operator of the store")
            case .success(let listing):
                emptyPages = listing.objects.isEmpty ? emptyPages + 1 : 0
                if emptyPages > Self.maxEmptyPages {
                    return ending(
                        "has \(emptyPages) consecutive pages without an object; report this to the operator of the store"
                    )
                }
                page = listing.objects.reversed()
                token = listing.next
                hasEnded = token == nil
                if let named, hasEnded, page.isEmpty { return .source(BatchSource(source: named)) }
            case .failure(let error):
                hasEnded = true
                // Credentials that cannot list a bucket may still be able to read the object.
                if let named { return .source(BatchSource(source: named)) }
                return .failure(
                    source: folder.normalized, BatchFailure(code: PipelineError(error).code, message: error.message))
            }
        }
    }

    /// Ends a listing that a correct store would not return.
    private func ending(_ reason: String) -> BatchEntry {
        (hasEnded, page) = (true, [])
        return .failure(
            source: folder.normalized,
            BatchFailure(code: .fetchFailed, message: "the store's listing of \(folder) \(reason)"))
    }

    /// Returns the reason why an object is refused, or nil if it is not. The key of a refused object would lead to
    /// names that the user did not ask for.
    private func refusal(of key: String) -> String? {
        let folder = SourceURL.percentDecoded(String(folder.path.dropFirst()))
        guard key.utf8.starts(with: folder) else {
            return "the store listed this object for \(self.folder), which does not contain it"
        }
        guard !key.pathParts.contains(where: { [".", ".."].contains($0) }) else {
            return "the key of the object contains a `.` or `..` segment; rename the object"
        }
        // Includes control characters outside ASCII.
        return key.unicodeScalars.contains { $0.properties.generalCategory == .control }
            ? "the key of the object contains control characters; rename the object" : nil
    }

    private func entry(_ object: FolderListing.Object) -> BatchEntry? {
        guard object.key.utf8.count <= Self.longestKey else {
            return ending("contains a key of \(object.key.utf8.count) bytes; the maximum is 1,024")
        }
        // Other programs represent empty folders by such objects.
        if object.size == 0, object.key.utf8.last == UInt8(ascii: "/") { return nil }
        let source = folder.stored(object.key)
        if let excluded, source.utf8.starts(with: excluded.utf8) { return nil }
        if let reason = refusal(of: object.key) {
            return .failure(source: source, BatchFailure(code: .badSource, message: "\(source): \(reason)"))
        }
        do throws(SourceError) {
            _ = try SourceURL(stored: source)
        } catch {
            return .failure(source: source, BatchFailure(code: .badSource, message: error.message))
        }
        let name = String(decoding: object.key.utf8.dropFirst(prefix), as: UTF8.self)
        if let reason = rule?.reason(toLeaveOut: name) { return .leftOut(source: source, SkipReason(reason)) }
        let parts = name.splitAtLastSlash
        if AtomicOutput.isTemporary(parts?.name ?? name) { return nil }
        return .source(
            BatchSource(source: source, folder: parts?.folder ?? "", isFound: true, length: object.size))
    }
}

/// Waits for a task. The calling thread must be one of our own threads, because it blocks.
///
/// - Parameter isInterrupted: A closure that is polled while waiting. If it returns true, the task is cancelled.
func waitOutside<Value: Sendable>(
    until isInterrupted: () -> Bool = { false }, _ work: @escaping @Sendable () async -> Value
) -> Value {
    let box = BlockingResult<Value>()
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

private final class BlockingResult<Value: Sendable>: Sendable {
    let value = Mutex<Value?>(nil)
}
