import PipelineSupport
import Synchronization

extension ObjectTier {
    /// Purges a selection. A purge by source takes three round trips: it writes the purge while it reads the records,
    /// then lists the objects that the records lead to, and then removes them.
    package func purge(_ selection: EntrySelection) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        // No source has this name. It represents all work in progress.
        let inFlight = EntrySelection.workInFlight.sources
        let sources = selection.sources.subtracting(inFlight)
        if sources.count < selection.sources.count { result.mark = times.noteAll() }
        if let matching = selection.matching {
            try await purges.add(selection, matching, named: Self.random())
        }
        let found = Mutex<[SourceObject]>([])
        try await Self.each(Array(sources)) { [self] source throws(StoreError) in
            async let asked = Result(of: { () async throws(StoreError) in try await self.stored(source).object })
            if selection.mode != .variantsOnly {
                let text = Self.random()
                try await store.put(Self.purgeKey(source), Array(text.utf8), type: "text/plain")
                times.note([source], as: text)
            }
            switch await asked {
            case .success(let object?): found.withLock { $0.append(object) }
            // Ignore a damaged object, because it does not refer to other objects.
            case .failure(let error) where error.code != .damaged: throw error
            case .success, .failure: break
            }
        }
        let objects = found.withLock(\.self)
        let digests = Set(objects.flatMap(\.digests))
        times.note(digests.union(selection.digests).union(sources))
        result.sources = objects.count { !$0.records.isEmpty }
        if selection.mode != .variantsOnly { result.records = objects.reduce(0) { $0 + $1.records.count } }
        // These are digests without a known record. A selection invalidates its digests anyway.
        let all = selection.matching == nil ? digests.union(selection.digests) : digests
        if selection.mode != .soft {
            result.add(try await remove(all, of: objects, withOriginals: selection.mode == .hard))
        }
        result.digests.formUnion(digests.union(selection.digests))
        result.mark = max(result.mark, times.note(sources.union(selection.digests)))
        return result
    }

    package func wasPurgedElsewhere(_ selection: EntrySelection) -> Bool {
        times.note(selection.sources.union(selection.digests))
        // Each look-up reads the last purge of its source, so purges by source do not require reading the list again.
        let isAll = !selection.sources.isDisjoint(with: EntrySelection.workInFlight.sources)
        if isAll || selection.matching != nil { purges.expire() }
        return true
    }

    /// Removes the variants of digests. If `withOriginals` is true, also removes the sources' objects, and the bodies
    /// that no other source has had.
    private func remove(
        _ digests: Set<String>, of objects: [SourceObject], withOriginals: Bool
    ) async throws(StoreError) -> PurgeResult {
        let found = Mutex((keys: [String](), result: PurgeResult()))
        try await Self.each(Array(digests.filter { DigestKey($0) != nil })) { [self] digest throws(StoreError) in
            let own = objects.filter { withOriginals && $0.digests.contains(digest) }
                .map { "d/\(digest)/\(Self.hash($0.source))" }
            async let body = Result(of: { () async throws(StoreError) in try await self.body(digest, of: own) })
            try await eachPage(of: "v/\(digest)/") { page throws(StoreError) in
                found.withLock { found in
                    found.keys += page.map(\.key)
                    found.result.variants += page.count
                    found.result.bytes += page.reduce(0) { $0 + $1.size }
                }
            }
            let removed = try await body.get()
            found.withLock { found in
                found.keys += own + removed
                found.result.originals += removed.count
            }
        }
        let records = withOriginals ? objects.map { Self.key(of: $0.source) } : []
        do throws(StoreError) {
            try await Self.each(found.withLock { $0.keys } + records) { [store] key throws(StoreError) in
                try await store.delete(key)
            }
        } catch {
            // Restore them, because the next purge needs them to find the remaining objects.
            if withOriginals { for object in objects { try? await put(object) } }
            throw error
        }
        return found.withLock { $0.result }
    }

    /// Returns the key of an original's body if it exists and belongs only to sources with a key in `own`.
    private func body(_ digest: String, of own: [String]) async throws(StoreError) -> [String] {
        if own.isEmpty { return [] }
        async let isThere = Result(of: { () async throws(StoreError) in try await self.store.holds("o/" + digest) })
        let having = try await store.list("d/\(digest)/", after: nil).objects
        return try await isThere.get() && having.allSatisfy { own.contains($0.key) } ? ["o/" + digest] : []
    }

    /// Returns 32 random hexadecimal digits, which no other purge has.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return hex((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}
