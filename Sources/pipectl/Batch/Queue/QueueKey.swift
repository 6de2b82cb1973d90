import PipelineFleet
import PipelineSupport

/// The secret that batches sign the entries of a queue with, and that workers check them by.
struct QueueKey: Sendable {
    static let leastBytes = 16
    private let key: [UInt8]

    /// nil if the text is too short.
    init?(_ text: String) {
        guard text.utf8.count >= Self.leastBytes else { return nil }
        key = Array(text.utf8)
    }

    /// HMAC-SHA256 over the batch, its options and the entry, so that an entry holds for its own batch alone.
    private func code(_ entry: [UInt8], _ options: [UInt8], _ batch: BatchID) -> [UInt8] {
        let head = "pipectl queue 1\n\(batch)\n\(options.count)\n"
        return Array(hex(hmacSHA256(Array(head.utf8) + options + entry, key: key)).utf8)
    }

    /// The entry behind its signature of 64 hexadecimal digits.
    func signed(_ entry: [UInt8], _ options: [UInt8], of batch: BatchID) -> [UInt8] {
        code(entry, options, batch) + entry
    }

    /// Splits what a queue holds into signature and entry; the signature is empty for an unsigned one.
    static func parts(_ payload: [UInt8]) -> (signature: [UInt8], entry: [UInt8]) {
        // An unsigned entry is a JSON object.
        guard payload.first != UInt8(ascii: "{") else { return ([], payload) }
        return (Array(payload.prefix(64)), Array(payload.dropFirst(64)))
    }

    /// Whether a payload carries this key's signature for the batch.
    func hasSigned(_ payload: [UInt8], _ options: [UInt8], of batch: BatchID) -> Bool {
        let (signature, entry) = Self.parts(payload)
        return areEqualInConstantTime(signature, code(entry, options, batch))
    }
}

/// Whom a worker believes.
struct QueueTrust: Sendable {
    /// nil without a key: signatures cannot be checked.
    var key: QueueKey?
    /// Whether entries without a signature are rendered, too.
    var takesUnsigned: Bool

    /// Why an entry is not rendered; nil if it is.
    func refusal(of payload: [UInt8], _ options: [UInt8], in batch: BatchID) -> BatchFailure? {
        if takesUnsigned, key == nil || QueueKey.parts(payload).signature.isEmpty { return nil }
        if let key, key.hasSigned(payload, options, of: batch) { return nil }
        return BatchFailure(
            code: .notSigned,
            message: QueueKey.parts(payload).signature.isEmpty
                ? "the entry is not signed; set PIPECTL_QUEUE_KEY for `pipectl batch --queue`"
                : "the entry's signature is not that of this worker's key (PIPECTL_QUEUE_KEY) for this batch")
    }
}
