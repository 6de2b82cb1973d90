import HTTPCaching

/// The object format of entries. The body comes first, so that other tools can show it. Strings that describe the body
/// follow. The footer has 16 bytes: the length of the strings, the version of the format, a magic number, and the
/// CRC-32C of the key and of all previous bytes. Numbers have 32 bits and are little-endian.
///
/// An object that has a different format or a newer version counts as damaged and is treated as absent.
enum ObjectCoding {
    static let version: UInt32 = 1
    private static let mark: UInt32 = 0x4C50_4D49  // "IMPL"
    private static let footerLength = 16

    static func encode(_ body: [UInt8], _ texts: [String?], key: String) -> [UInt8] {
        let described = EntryCoding.encode(texts)
        var bytes = body
        bytes.reserveCapacity(body.count + described.count + footerLength)
        bytes += described
        for number in [UInt32(described.count), version, mark] { append(number, to: &bytes) }
        append(checksum(bytes[...], key), to: &bytes)
        return bytes
    }

    /// Decodes the body and its description. Returns nil if the object is damaged.
    static func decode(_ bytes: [UInt8], key: String) -> (body: ArraySlice<UInt8>, texts: TextReader)? {
        guard bytes.count >= footerLength else { return nil }
        let end = bytes.count - footerLength
        let footer = (0..<4).map { number in
            bytes[(end + 4 * number)..<(end + 4 * number + 4)].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
        }
        guard footer[1] == version, footer[2] == mark, footer[3] == checksum(bytes[..<(bytes.count - 4)], key),
            footer[0] <= end, let texts = EntryCoding.texts(Array(bytes[(end - Int(footer[0]))..<end]))
        else { return nil }
        return (bytes[..<(end - Int(footer[0]))], TextReader(texts))
    }

    private static func checksum(_ bytes: ArraySlice<UInt8>, _ key: String) -> UInt32 {
        var running = CRC32C()
        var key = key
        key.withUTF8 { running.update(UnsafeRawBufferPointer($0)) }
        bytes.withUnsafeBytes { running.update($0) }
        return running.value
    }

    private static func append(_ number: UInt32, to bytes: inout [UInt8]) {
        withUnsafeBytes(of: number.littleEndian) { bytes.append(contentsOf: $0) }
    }
}

/// Reads strings in order. If a string is missing, or is not a number although a number is expected, the object is
/// damaged.
struct TextReader {
    struct Damaged: Error {}
    private var rest: ArraySlice<String?>

    init(_ texts: [String?]) { rest = texts[...] }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func optional() throws(Damaged) -> String? {
        guard let text = rest.popFirst() else { throw Damaged() }
        return text
    }

    mutating func text() throws(Damaged) -> String {
        guard let text = try optional() else { throw Damaged() }
        return text
    }

    mutating func number<Number: LosslessStringConvertible>(_: Number.Type = Number.self) throws(Damaged) -> Number {
        guard let number = Number(try text()) else { throw Damaged() }
        return number
    }

    /// Reads the number of entries that follow. Each entry contains at least one string.
    mutating func count() throws(Damaged) -> Int {
        let count = try number(Int.self)
        guard 0...rest.count ~= count else { throw Damaged() }
        return count
    }

    mutating func list() throws(Damaged) -> [String] {
        var list: [String] = []
        for _ in 0..<(try count()) { list.append(try text()) }
        return list
    }
}

/// A variant in an object.
struct StoredObjectVariant {
    var entry: VariantEntry
    /// The source of the variant's original, or nil if it is unknown.
    var source: String?
    /// The purges of the source that were known when rendering began.
    var seen: Set<String>

    var texts: [String?] {
        [
            entry.key, entry.originalDigest, entry.digest, "\(entry.length)", entry.storedType, "\(entry.width)",
            "\(entry.height)", entry.recipe, "\(entry.cost)", "\(entry.created)", source, "\(seen.count)",
        ] + seen.sorted()
    }
}

extension StoredObjectVariant {
    init(_ reader: inout TextReader) throws(TextReader.Damaged) {
        let described = VariantEntry(
            key: try reader.text(), originalDigest: try reader.text(), digest: try reader.text(),
            length: try reader.number(), mediaType: try reader.text(), width: try reader.number(),
            height: try reader.number(), recipe: try reader.text(), cost: try reader.number(),
            created: try reader.number())
        entry = described.with(storedType: described.mediaType)
        source = try reader.optional()
        seen = Set(try reader.list())
    }
}

/// All records of a source, as one object.
struct SourceObject {
    struct Record {
        var record: OriginalRecord
        /// The purges of the source that were known when the fetch began.
        var seen: Set<String>
    }

    var source: String
    /// The records, newest first.
    var records: [Record] = []
    /// The digests that the source has had, latest last.
    var digests: [String] = []

    /// The maximum number of remembered digests. Variants of earlier digests outlive a purge, but no record leads to
    /// them.
    static let maxDigests = 64

    init(source: String) { self.source = source }

    mutating func put(_ record: OriginalRecord, seen: Set<String>) {
        records.removeAll { $0.record.selection == record.selection }
        records.append(Record(record: record, seen: seen))
        records.sort { $0.record.response.responseTime > $1.record.response.responseTime }
        records.removeLast(max(0, records.count - OriginalRecord.selectionLimit))
        digests.removeAll { $0 == record.digest }
        digests.append(record.digest)
        digests.removeFirst(max(0, digests.count - Self.maxDigests))
    }

    /// Objects without provisional records end after the records, as in earlier versions.
    var texts: [String?] {
        let provisional = records.indices.filter { records[$0].record.isProvisional }.map { "\($0)" }
        return [source, "\(digests.count)"] + digests + ["\(records.count)"] + records.flatMap(\.texts)
            + (provisional.isEmpty ? [] : ["\(provisional.count)"] + provisional)
    }

    init(_ reader: inout TextReader) throws(TextReader.Damaged) {
        source = try reader.text()
        digests = try reader.list()
        for _ in 0..<(try reader.count()) { records.append(try Record(&reader, source: source)) }
        for text in reader.isAtEnd ? [] : try reader.list() {
            guard let at = Int(text), records.indices.contains(at) else { throw TextReader.Damaged() }
            records[at].record.isProvisional = true
        }
        records.removeAll { $0.record.response.selecting.keys.contains(OriginalRecord.formerMark) }
    }
}

extension SourceObject.Record {
    fileprivate var texts: [String?] {
        let response = record.response
        let details = record.media?.details ?? []
        var texts: [String?] = [
            "\(response.status)", "\(response.requestTime)", "\(response.responseTime)",
            response.assignedLifetime.map { "\($0)" }, response.lifetimeLimit.map { "\($0)" },
            "\(response.isSoftPurged)", record.digest, "\(record.length)", "\(record.fetchMilliseconds)",
            record.finalURL, record.media?.type, "\(record.media?.width ?? 0)", "\(record.media?.height ?? 0)",
        ]
        func add(_ count: Int, _ further: [String?]) { texts += ["\(count)"] + further }
        add(details.count, details.map { "\($0)" })
        add(response.selecting.count, response.selecting.sorted { $0.key < $1.key }.flatMap { [$0.key, $0.value] })
        add(response.fields.count, response.fields.flatMap { [$0.name, $0.value] })
        add(seen.count, seen.sorted())
        return texts
    }

    fileprivate init(_ reader: inout TextReader, source: String) throws(TextReader.Damaged) {
        func double(_ text: String?) throws(TextReader.Damaged) -> Double? {
            guard let text else { return nil }
            guard let number = Double(text) else { throw TextReader.Damaged() }
            return number
        }
        var response = StoredResponse(
            status: try reader.number(), fields: [], requestTime: try reader.number(),
            responseTime: try reader.number(), assignedLifetime: try double(try reader.optional()),
            lifetimeLimit: try double(try reader.optional()), isSoftPurged: try reader.number())
        let digest = try reader.text()
        let length = try reader.number(Int.self)
        let milliseconds = try reader.number(Double.self)
        let finalURL = try reader.optional()
        let type = try reader.optional()
        var media = MediaDescription(type: type ?? "", width: try reader.number(), height: try reader.number())
        for text in try reader.list() {
            guard let number = Int(text) else { throw TextReader.Damaged() }
            media.details.append(number)
        }
        for _ in 0..<(try reader.count()) { response.selecting[try reader.text()] = .some(try reader.optional()) }
        for _ in 0..<(try reader.count()) {
            response.fields.append(HeaderField(try reader.text(), try reader.text()))
        }
        record = OriginalRecord(
            source: source, response: response, digest: digest, length: length, media: type == nil ? nil : media,
            fetchMilliseconds: milliseconds, finalURL: finalURL)
        seen = Set(try reader.list())
    }
}
