import HTTPCaching
package import PipelineCaching

/// A response with its record and body in memory, which can be returned again without suspending.
///
/// The value retains the record but not the body. The memory tier decides how long bodies are kept, and counts each
/// access.
package struct MemoryAnswer: Sendable {
    enum Body {
        case variant(key: String, digest: String, of: String)
        case original(digest: String)
    }

    /// The only record of the source that answers such requests. While memory holds this record, it is selected by
    /// every request without special fields.
    package let record: OriginalRecord
    /// The serial number of the insertion of the record.
    let serial: UInt64
    let body: Body
    /// The number of bytes that a second pass has saved.
    var savedBytes = 0
}

extension ImagePipeline {
    /// Returns a variant or original that memory holds. Returns nil if memory does not hold it or the original may not
    /// be stored.
    package func memoryAnswer(for response: ImageResponse) -> MemoryAnswer? {
        guard response.isStorable, !response.isStale else { return nil }
        return memoryAnswer(
            response.record, .image,
            response.key.map { .variant(key: $0, digest: response.digest, of: response.record.digest) }
                ?? .original(digest: response.digest), savedBytes: response.savedBytes)
    }

    /// Returns an original that memory holds. Returns nil if memory does not hold it.
    package func memoryAnswer(for response: OriginalResponse) -> MemoryAnswer? {
        response.record.flatMap { memoryAnswer($0, .original, .original(digest: $0.digest)) }
    }

    private func memoryAnswer(
        _ record: OriginalRecord, _ purpose: AdmittedRequest.Purpose, _ body: MemoryAnswer.Body, savedBytes: Int = 0
    ) -> MemoryAnswer? {
        // If there are several records, a request may select a different one.
        guard let records = tiers.memory.records.peek(record.source),
            LookUpStage.offered(records.value, for: purpose) == [record]
        else { return nil }
        return MemoryAnswer(record: record, serial: records.serial, body: body, savedBytes: savedBytes)
    }

    /// Returns the body of an answer. The call counts as an access to the body and the record. Returns nil if memory
    /// has evicted the body or the records, or if any process has purged them. The caller checks whether the answer is
    /// fresh.
    package func body(of answer: MemoryAnswer) -> [UInt8]? {
        guard let body = observe.hit(of: answer.record.source, { tiers.body(of: answer) }) else { return nil }
        if answer.savedBytes > 0 { secondPass?.countSaved(answer.savedBytes) }
        return body
    }

    /// Returns a body that memory has evicted, from a tier behind memory. Returns nil if no tier has the body, or if
    /// the tier has it in a file.
    package func storedBody(of answer: MemoryAnswer) async -> (bytes: [UInt8], tier: TierName)? {
        let began = observe.start
        let marks = tiers.marks()
        guard tiers.holdsRecords(of: answer) else { return nil }
        let found: (bytes: [UInt8], tier: TierName)
        switch answer.body {
        case .variant(let key, let digest, let original):
            guard let (variant, tier) = await tiers.variant(key, of: original, from: answer.record.source),
                variant.entry.digest == digest
            else { return nil }
            found = (variant.body, tier)
        case .original(let digest):
            guard let (body, tier) = await tiers.originalBody(digest, of: (answer.record, marks)),
                case .bytes(let bytes) = body
            else { return nil }
            found = (bytes, tier)
        }
        observe.hit(of: answer.record.source, since: began)
        return found
    }
}

extension Tiers {
    fileprivate func body(of answer: MemoryAnswer) -> [UInt8]? {
        catchUpWithFartherTiers()
        // If the result is nil, the caller makes a complete request, which counts the misses.
        let body: [UInt8]
        switch answer.body {
        case .variant(let key, let digest, _):
            guard let entry = memory.variants.entryIfPresent(for: key), entry.value.digest == digest else { return nil }
            body = entry.body
        case .original(let digest):
            guard let entry = memory.originals.entryIfPresent(for: digest) else { return nil }
            body = entry.body
        }
        // Checked after the body was found, so that a single system call detects every purge up to then.
        return holdsRecords(of: answer) ? body : nil
    }

    fileprivate func holdsRecords(of answer: MemoryAnswer) -> Bool {
        isCurrent && memory.records.entryIfPresent(for: answer.record.source)?.serial == answer.serial
    }
}
