import PipelineSupport
import Synchronization

extension ObjectTier {
    package func purge(_ selection: PurgeSelection) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        // No source has this name: it stands for all work in flight.
        if !selection.sources.isDisjoint(with: PurgeSelection.workInFlight.sources) {
            result.mark = PurgeMark(times.noteAll())
        }
        if let matching = selection.matching {
            try await purges.add(selection, matching, named: Self.random())
        }
        let sources = Array(selection.sources.subtracting(PurgeSelection.workInFlight.sources))
        // First everything is void; what is removed then may take long, and may fail.
        if selection.mode != .variantsOnly {
            try await Self.each(sources) { [self] source throws(StoreError) in
                let text = Self.random()
                try await store.put(Self.purgeKey(source), Array(text.utf8), type: "text/plain")
                times.note([source], as: text)
            }
        }
        let removed = Removed()
        try await Self.each(sources) { [self] source throws(StoreError) in
            removed.add(try await remove(source, selection.mode))
        }
        // Digests of which no record is known. Those of a selection are void with it.
        let left = selection.digests.subtracting(removed.result.digests)
        times.note(left)
        if selection.mode != .soft, selection.matching == nil {
            try await Self.each(Array(left)) { [self] digest throws(StoreError) in
                removed.add(try await removeVariants(of: digest))
            }
        }
        let mark = max(result.mark.rawValue, times.note(selection.sources.union(left)))
        result = removed.result
        result.digests.formUnion(left)
        result.mark = PurgeMark(mark)
        return result
    }

    package func wasPurgedElsewhere(_ selection: PurgeSelection) -> Bool {
        times.note(selection.sources.union(selection.digests))
        // A look-up reads the last purge of its source by itself.
        let isAll = !selection.sources.isDisjoint(with: PurgeSelection.workInFlight.sources)
        if isAll || selection.matching != nil { purges.expire() }
        return true
    }

    private func remove(_ source: String, _ mode: PurgeMode) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        let object: SourceObject?
        do throws(StoreError) { object = try await stored(source).object } catch {
            // A damaged one leads to nothing.
            if error.code != .damaged { throw error }
            object = nil
        }
        let digests = Set(object?.digests ?? [])
        times.note(digests.union([source]))
        if let object, !object.records.isEmpty { result.sources = 1 }
        if mode != .variantsOnly { result.records = object?.records.count ?? 0 }
        if mode != .soft { for digest in digests { result.add(try await removeVariants(of: digest)) } }
        result.digests = digests
        guard mode == .hard, object != nil else { return result }
        try await store.delete(Self.key(of: source))
        for digest in digests {
            try await store.delete("d/\(digest)/\(Self.hash(source))")
            let others = try await store.list("d/\(digest)/", after: nil)
            guard others.objects.isEmpty, try await store.holds("o/" + digest) else { continue }
            try await store.delete("o/" + digest)
            result.originals += 1
        }
        return result
    }

    private func removeVariants(of digest: String) async throws(StoreError) -> PurgeResult {
        var result = PurgeResult()
        guard DigestKey(digest) != nil else { return result }
        try await eachPage(of: "v/\(digest)/") { page throws(StoreError) in
            try await Self.each(page.map(\.key)) { [store] key throws(StoreError) in try await store.delete(key) }
            result.variants += page.count
            result.bytes += page.reduce(0) { $0 + $1.size }
        }
        return result
    }

    /// 32 hexadecimal digits that no other purge has.
    private static func random() -> String {
        var generator = SystemRandomNumberGenerator()
        return hex((0..<16).map { _ in UInt8.random(in: 0...255, using: &generator) })
    }
}

/// What several removals have removed, together.
private final class Removed: Sendable {
    private let sum = Mutex(PurgeResult())
    var result: PurgeResult { sum.withLock(\.self) }
    func add(_ part: PurgeResult) { sum.withLock { $0.add(part) } }
}
