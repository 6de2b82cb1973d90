import HTTPCaching

@testable import PipelineCaching

/// Single entries of the memory tier, which `Tiers` reads and stores with more at once.
extension MemoryTier {
    func records(source: String) -> [OriginalRecord] { foundRecords(of: source) ?? [] }

    func freshen(_ record: OriginalRecord) -> Bool {
        let isThere = peek(source: record.source)?.contains { $0.selection == record.selection }
        return isThere == true && update(record, generation: nil)
    }

    func originalBody(digest: String) -> EntryBody? { (originals.entry(for: digest)?.body).map(EntryBody.bytes) }

    func holdsOriginal(digest: String) -> Bool { originals.peek(digest) != nil }

    /// A body in a file is too long for memory: only its record is kept.
    func storeOriginal(_ record: OriginalRecord, content: EntryBody?, generation: PurgeMark) -> Bool {
        guard update(record, generation: generation) else { return false }
        if case .bytes(let bytes)? = content { keep(bytes, under: record, generation: generation) }
        return true
    }

    func variant(key: String) -> (entry: VariantEntry, body: [UInt8])? {
        variants.entry(for: key).map { ($0.value, $0.body) }
    }

    func storeVariant(_ entry: VariantEntry, body: [UInt8], generation: PurgeMark, source: String?) -> Bool {
        keep(entry, body: body, of: source, generation: generation)
    }

    func purge(source: String, digests: Set<String>) -> PurgeResult {
        purge(EntrySelection(sources: [source], digests: digests))
    }
}
