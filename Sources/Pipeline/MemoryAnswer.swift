import HTTPCaching
package import PipelineCaching

/// An answer whose record and body memory holds, so that it can be given again without suspending.
///
/// It keeps the record but no body: the memory tier decides how long bodies stay, and counts each access.
package struct MemoryAnswer: Sendable {
    enum Body {
        case variant(key: String, digest: String, of: String)
        case original(digest: String)
    }

    /// The only record of the source that answers such requests. While memory has this very one, every request selects
    /// it that says nothing of its own.
    let record: OriginalRecord
    /// The insertion of that record.
    let serial: UInt64
    let body: Body
}

extension ImagePipeline {
    /// A variant or original as memory holds it; nil if it does not, or if its original may not be stored.
    package func memoryAnswer(for response: ImageResponse) -> MemoryAnswer? {
        guard response.isStorable, !response.isStale else { return nil }
        return memoryAnswer(
            response.record, .image,
            response.key.map { .variant(key: $0, digest: response.digest, of: response.record.digest) }
                ?? .original(digest: response.digest))
    }

    /// An original as memory holds it; nil if it does not.
    package func memoryAnswer(for response: OriginalResponse) -> MemoryAnswer? {
        response.record.flatMap { memoryAnswer($0, .original, .original(digest: $0.digest)) }
    }

    private func memoryAnswer(
        _ record: OriginalRecord, _ purpose: AdmittedRequest.Purpose, _ body: MemoryAnswer.Body
    ) -> MemoryAnswer? {
        // Of several, another may be selected, although this one was a moment ago.
        guard let records = tiers.memory.records.peek(record.source),
            LookUpStage.offered(records.value, for: purpose) == [record]
        else { return nil }
        return MemoryAnswer(record: record, serial: records.serial, body: body)
    }

    /// The body of an answer, if memory still holds it and the records it was chosen from, and no process has purged them;
    /// counts as an access to both. The caller checks whether the answer is fresh.
    package func body(of answer: MemoryAnswer) -> [UInt8]? {
        observe.hit(of: answer.record.source) { tiers.body(of: answer) }
    }

    /// The same if memory has evicted the body: from a tier behind it, unless that has a file.
    package func storedBody(of answer: MemoryAnswer) async -> (bytes: [UInt8], tier: TierName)? {
        let began = observe.start
        guard tiers.holdsRecords(of: answer) else { return nil }
        let found: (bytes: [UInt8], tier: TierName)
        switch answer.body {
        case .variant(let key, let digest, let original):
            guard let (variant, tier) = await tiers.variant(key, of: original, from: answer.record.source),
                variant.entry.digest == digest
            else { return nil }
            found = (variant.body, tier)
        case .original(let digest):
            guard let (body, tier) = await tiers.originalBody(digest, of: answer.record), case .bytes(let bytes) = body
            else {
                return nil
            }
            found = (bytes, tier)
        }
        observe.hit(of: answer.record.source, since: began)
        return found
    }
}

extension Tiers {
    fileprivate func body(of answer: MemoryAnswer) -> [UInt8]? {
        catchUpWithFartherTiers()
        // A caller that gets nil asks in full, which counts the misses.
        let body: [UInt8]
        switch answer.body {
        case .variant(let key, let digest, _):
            guard let entry = memory.variants.entryIfPresent(for: key), entry.value.digest == digest else { return nil }
            body = entry.body
        case .original(let digest):
            guard let entry = memory.originals.entryIfPresent(for: digest) else { return nil }
            body = entry.body
        }
        // After the body was found, so that one system call sees every purge until then.
        return holdsRecords(of: answer) ? body : nil
    }

    fileprivate func holdsRecords(of answer: MemoryAnswer) -> Bool {
        isCurrent && memory.records.entryIfPresent(for: answer.record.source)?.serial == answer.serial
    }
}
