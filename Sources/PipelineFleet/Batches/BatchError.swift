/// The reason why a call for a batch failed.
package enum BatchError: Error, Sendable, Hashable, CustomStringConvertible {
    case redis(RedisError)
    /// The server does not support a command that batches use.
    case serverTooOld(RedisError)
    /// The batch does not exist in Redis: it was removed or evicted, it has expired, or the server was emptied.
    case gone(BatchID)
    /// A different version of this program created the batch.
    case unknownFormat(BatchID)
    /// An item or its result exceeds `BatchTerms.maxBytes`. If the number is nil, the options exceed it.
    case tooLarge(item: Int?, bytes: Int)
    /// The batch does not contain as many items as the submitter expects: items were added by another submitter, or by
    /// an earlier call that seemed to fail. Nothing was changed.
    case outOfStep(expected: Int, submitted: Int)
    /// Items were submitted after `finish`.
    case finished(BatchID, total: Int)

    package var description: String {
        switch self {
        case .redis(let error): error.message
        case .serverTooOld(let error): "\(error.message); batches require Redis 6.2 or newer"
        case .gone(let id):
            "batch \(id) does not exist on the Redis server: it has expired, or was removed or evicted; submit it again"
        case .unknownFormat(let id): "batch \(id) was created by a different version of this program; use that version"
        case .tooLarge(let item, let bytes):
            """
            \(item.map { "item \($0) of the batch, or its result, has" } ?? "the options of the batch have") \(bytes) \
            bytes; the maximum is \(BatchTerms.maxBytes)
            """
        case .outOfStep(let expected, let submitted):
            "the batch has \(submitted) items, not \(expected), because another submitter is adding items; continue at \(submitted)"
        case .finished(let id, let total):
            "batch \(id) is already complete with \(total) items; create a new batch for more items"
        }
    }
}
