import Pipeline
import PipelineSupport
import Variants

/// Formats cache entries as human-readable lines or as JSON. docs/cache.md documents the members.
enum EntryText {
    /// Returns the entry on one line. The JSON form contains all information about the entry.
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
                lines.append("selected by \(name): \(value ?? "(missing)")")
            }
            if record.isProvisional { lines.append("provisional: no variant of it has rendered yet") }
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
        let size =
            record.header.map { "\($0.encodedWidth) × \($0.encodedHeight) \($0.format.rawValue)" } ?? "not an image"
        let body = item.hasBody ? "" : ", no body"
        return TextTable.plain(
            "original \(record.digest.prefix(12))  \(record.source)  \(size), \(Readable.bytes(record.length))\(body),"
                + use(item.uses, item.lastUsed, now))
    }

    private static func text(_ item: ListedVariant, now: Double) -> String {
        let entry = item.entry
        let first = entry.firstLength.map { " (first \(Readable.bytes($0)))" } ?? ""
        return TextTable.plain(
            "variant  \(entry.key.prefix(12))  \(entry.recipe)  \(entry.width) × \(entry.height)"
                + " \(entry.format?.rawValue ?? entry.mediaType), \(Readable.bytes(entry.length))\(first), of \(entry.originalDigest.prefix(12)),"
                + use(item.uses, item.lastUsed, now))
    }

    private static func use(_ uses: Int, _ lastUsed: Double, _ now: Double) -> String {
        " used \(times(uses)), last \(ago(lastUsed, now))"
    }

    /// Returns the access count as text, for example `3 times`. The count saturates at 255.
    private static func times(_ uses: Int) -> String {
        uses == 1 ? "once" : "\(uses) times" + (uses < 255 ? "" : " or more")
    }

    private static func ago(_ time: Double, _ now: Double) -> String {
        Readable.duration(seconds: max(0, now - time)) + " ago"
    }

    private static func milliseconds(_ value: Double) -> String { Readable.tenths(value) + " ms" }

    private static func object(_ item: ListedOriginal) -> String {
        let (record, header) = (item.record, item.record.header)
        var (selecting, fields) = (JSONText(), JSONText())
        for (name, value) in record.response.selecting.sorted(by: { $0.key < $1.key }) {
            selecting.add(name, raw: value?.json ?? "null")
        }
        for field in record.response.fields { fields.add(field.name, SourceURL.hidingSecrets(field.value)) }
        return JSONText([
            "kind": "original", "source": SourceURL.hidingSecrets(record.source), "digest": record.digest,
            "bytes": record.length, "hasBody": item.hasBody, "format": header?.format.rawValue,
            "width": header?.encodedWidth,
            "height": header?.encodedHeight, "pages": header?.pages, "alpha": header?.hasAlpha,
            "orientation": header?.orientation, "status": record.response.status,
            "finalURL": record.finalURL.map(SourceURL.hidingSecrets),
            "requestTime": JSONValue.double(record.response.requestTime),
            "responseTime": JSONValue.double(record.response.responseTime), "stored": JSONValue.double(item.stored),
            "lastUsed": JSONValue.double(item.lastUsed), "uses": item.uses,
            "fetchMilliseconds": record.fetchMilliseconds, "provisional": record.isProvisional,
            "selecting": selecting, "fields": fields,
        ]).json
    }

    private static func object(_ item: ListedVariant) -> String {
        let entry = item.entry
        return JSONText([
            "kind": "variant", "key": entry.key, "recipe": entry.recipe, "original": entry.originalDigest,
            "digest": entry.digest, "format": entry.format?.rawValue, "width": entry.width, "height": entry.height,
            "bytes": entry.length, "firstBytes": entry.firstLength, "costMilliseconds": entry.cost,
            "stored": JSONValue.double(entry.created),
            "lastUsed": JSONValue.double(item.lastUsed), "uses": item.uses,
        ]).json
    }
}
