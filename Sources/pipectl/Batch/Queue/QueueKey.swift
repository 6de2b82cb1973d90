import PipelineFleet
import PipelineSupport

/// The secret with which batches sign queue entries and workers verify them.
struct QueueKey: Sendable {
    static let minBytes = 16
    private let key: [UInt8]

    /// Returns nil if the string is shorter than `minBytes`.
    init?(_ text: String) {
        guard text.utf8.count >= Self.minBytes else { return nil }
        key = Array(text.utf8)
    }

    /// Returns the HMAC-SHA256 of the batch, its options and the entry. An entry is therefore valid only in its own
    /// batch.
    private func code(_ entry: [UInt8], _ options: [UInt8], _ batch: BatchID) -> [UInt8] {
        let head = "pipectl queue 1\n\(batch)\n\(options.count)\n"
        return Array(hex(hmacSHA256(Array(head.utf8) + options + entry, key: key)).utf8)
    }

    /// Returns the entry preceded by its signature, which has 64 hexadecimal digits.
    func signed(_ entry: [UInt8], _ options: [UInt8], of batch: BatchID) -> [UInt8] {
        code(entry, options, batch) + entry
    }

    /// Splits a queue payload into signature and entry. The signature is empty if the entry is unsigned.
    static func parts(_ payload: [UInt8]) -> (signature: [UInt8], entry: [UInt8]) {
        // An unsigned entry is a JSON object.
        guard payload.first != UInt8(ascii: "{") else { return ([], payload) }
        return (Array(payload.prefix(64)), Array(payload.dropFirst(64)))
    }

    /// Whether a payload has a valid signature of this key for the batch.
    func hasSigned(_ payload: [UInt8], _ options: [UInt8], of batch: BatchID) -> Bool {
        let (signature, entry) = Self.parts(payload)
        return areEqualInConstantTime(signature, code(entry, options, batch))
    }
}

/// Decides which queue entries a worker accepts.
struct QueueTrust: Sendable {
    /// The key, or nil if signatures cannot be verified.
    var key: QueueKey?
    /// Whether unsigned entries are rendered.
    var takesUnsigned: Bool

    /// Returns the reason why an entry is refused, or nil if it is accepted.
    func refusal(of payload: [UInt8], _ options: [UInt8], in batch: BatchID) -> BatchFailure? {
        if takesUnsigned, key == nil || QueueKey.parts(payload).signature.isEmpty { return nil }
        if let key, key.hasSigned(payload, options, of: batch) { return nil }
        return BatchFailure(
            code: .notSigned,
            message: QueueKey.parts(payload).signature.isEmpty
                ? "the entry is not signed; set PIPECTL_QUEUE_KEY when running `pipectl batch --queue`"
                : "the entry's signature is not valid for this batch and this worker's key; "
                    + "set the same PIPECTL_QUEUE_KEY for the worker as for the batch"
        )
    }
}
