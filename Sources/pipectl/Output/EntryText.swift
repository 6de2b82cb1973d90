import Pipeline
import PipelineSupport
import Variants

/// Formats cache entries as human-readable lines or as JSON; docs/cache.md documents the members.
enum EntryText {
    /// The entry on one line; the JSON form holds everything known about it.
    static func line(_ entry: ListedEntry, json: Bool, now: Double) -> String {
        switch entry {
        case .original(let item): json ? object(item) : text(item, now: now)
        case .variant(let item): json ? object(item) : text(item, now: now)
        }
    }

    static func details(_ entry: ListedEntry, now: Double) -> [String] {
        switch entry {
        case .original(let item):
            let record = item.record
            var lines = [
                "digest \(record.digest)",
                "status \(record.response.status), received \(ago(record.response.responseTime, now)),"
                    + " stored \(ago(item.stored, now)), fetched in \(milliseconds(record.fetchMilliseconds))",
            ]
            if let finalURL = record.finalURL { lines.append("redirected to \(SourceURL.hidingSecrets(finalURL))") }
            for (name, value) in record.response.selecting.sorted(by: { $0.key < $1.key }) {
                lines.append("selected by \(name): \(value ?? "(absent)")")
            }
            return lines + record.response.fields.map { "\($0.name): \(SourceURL.hidingSecrets($0.value))" }
        case .variant(let item):
            let entry = item.entry
            return [
                "key \(entry.key)", "digest \(entry.digest)", "original \(entry.originalDigest)",
                "stored \(ago(entry.created, now)), rendered in \(milliseconds(entry.cost)) of CPU",
            ]
        }
    }

    private static func text(_ item: ListedOriginal, now: Double) -> String {
        let record = item.record
        let size = record.header.map { "\($0.width) × \($0.height) \($0.format.rawValue)" } ?? "no image"
        let body = item.hasBody ? "" : ", no body"
        return TextTable.plain(
            "original \(record.digest.prefix(12))  \(record.source)  \(size), \(Readable.bytes(record.length))\(body),"
                + use(item.uses, item.lastUsed, now))
    }

    private static func text(_ item: ListedVariant, now: Double) -> String {
        let entry = item.entry
        return TextTable.plain(
            "variant  \(entry.key.prefix(12))  \(entry.recipe)  \(entry.width) × \(entry.height)"
                + " \(entry.format?.rawValue ?? entry.mediaType), \(Readable.bytes(entry.length)), of \(entry.originalDigest.prefix(12)),"
                + use(item.uses, item.lastUsed, now))
    }

    private static func use(_ uses: Int, _ lastUsed: Double, _ now: Double) -> String {
        " used \(times(uses)), last \(ago(lastUsed, now))"
    }

    /// The access count saturates at 255.
    private static func times(_ uses: Int) -> String {
        uses == 1 ? "once" : "\(uses) times" + (uses < 255 ? "" : " or more")
    }

    private static func ago(_ time: Double, _ now: Double) -> String {
        Readable.duration(seconds: max(0, now - time)) + " ago"
    }

    private static func milliseconds(_ value: Double) -> String { Readable.tenths(value) + " ms" }

    private static func object(_ item: ListedOriginal) -> String {
        let record = item.record
        var object = JSONText()
        object.add("kind", "original")
        object.add("source", SourceURL.hidingSecrets(record.source))
        object.add("digest", record.digest)
        object.add("bytes", record.length)
        object.add("hasBody", item.hasBody)
        object.add("format", record.header?.format.rawValue)
        object.add("width", record.header?.width)
        object.add("height", record.header?.height)
        object.add("pages", record.header?.pages)
        object.add("alpha", record.header?.hasAlpha)
        object.add("orientation", record.header?.orientation)
        object.add("status", record.response.status)
        object.add("finalURL", record.finalURL.map(SourceURL.hidingSecrets))
        object.add("requestTime", record.response.requestTime)
        object.add("responseTime", record.response.responseTime)
        object.add("stored", item.stored)
        object.add("lastUsed", item.lastUsed)
        object.add("uses", item.uses)
        object.add("fetchMilliseconds", raw: JSONText.thousandths(record.fetchMilliseconds))
        object.add("selecting") { inner in
            for (name, value) in record.response.selecting.sorted(by: { $0.key < $1.key }) {
                inner.add(name, raw: value.map { JSONText.quoted($0) } ?? "null")
            }
        }
        object.add("fields") { inner in
            for field in record.response.fields { inner.add(field.name, SourceURL.hidingSecrets(field.value)) }
        }
        return object.closed
    }

    private static func object(_ item: ListedVariant) -> String {
        let entry = item.entry
        var object = JSONText()
        object.add("kind", "variant")
        object.add("key", entry.key)
        object.add("recipe", entry.recipe)
        object.add("original", entry.originalDigest)
        object.add("digest", entry.digest)
        object.add("format", entry.format?.rawValue)
        object.add("width", entry.width)
        object.add("height", entry.height)
        object.add("bytes", entry.length)
        object.add("costMilliseconds", raw: JSONText.thousandths(entry.cost))
        object.add("stored", entry.created)
        object.add("lastUsed", item.lastUsed)
        object.add("uses", item.uses)
        return object.closed
    }
}
