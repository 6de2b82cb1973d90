import PipelineSupport

extension LineReader {
    /// Returns a failed item with the line as its source.
    func failed(line: Int, _ message: String) -> BatchEntry {
        .failure(
            source: "\(name):\(line)",
            BatchFailure(code: .badManifestLine, message: "\(name), line \(line): \(message)"))
    }

    /// Returns the read error as a failed item, or nil if no error occurred or it has already been reported.
    func takeFailure() -> BatchEntry? {
        failure.take().map { .failure(source: name, BatchFailure(code: .badManifest, message: $0.description)) }
    }
}

/// The column names of a CSV manifest and the member names of a JSON Lines manifest.
private let manifestNames = ["source", "name", "recipes"]

/// Reads a list with one source per line, or JSON Lines.
final class SourceLinesReader: EntryReader {
    private let lines: LineReader
    private let parse: (String) throws(NameError) -> BatchSource?

    /// - Parameter parse: A closure that returns the source of a line, or nil to skip the line.
    init(
        _ lines: LineReader,
        _ parse: @escaping (String) throws(NameError) -> BatchSource? = SourceLinesReader.fromText
    ) {
        self.lines = lines
        self.parse = parse
    }

    func next() -> BatchEntry? {
        while true {
            let number = lines.line
            do throws(NameError) {
                guard let text = try lines.nextLine() else { return lines.takeFailure() }
                if let source = try parse(text) { return .source(source) }
            } catch {
                return lines.failed(line: number, error.message)
            }
        }
    }

    /// Returns the source on a line of a list. Blank lines and lines that begin with `#` are skipped.
    static func fromText(_ text: String) throws(NameError) -> BatchSource? {
        let source = text.trimmed
        if source.isEmpty || source.hasPrefix("#") { return nil }
        if source.utf8.contains(0) { throw NameError(message: "the source contains a NUL character") }
        return BatchSource(source: source)
    }

    /// Parses `{"source":…,"name":…,"recipes":[…]}`. Blank lines are skipped.
    static func fromJSON(_ text: String) throws(NameError) -> BatchSource? {
        if text.trimmed.isEmpty { return nil }
        let value: SettingValue
        do {
            value = try JSONParser.parse(text)
        } catch {
            throw NameError(message: "not JSON: \(error)")
        }
        guard case .object(let members) = value else { throw NameError(message: "expected a JSON object") }
        for member in members where !manifestNames.contains(member.name) {
            throw NameError(
                message: "unknown member `\(member.name)`" + NearestName.hint(member.name, in: manifestNames))
        }
        guard case .string(let source)? = value["source"], !source.isEmpty, !source.utf8.contains(0) else {
            throw NameError(message: "`source` is missing or not a string")
        }
        var result = BatchSource(source: source)
        switch value["name"] {
        case nil, .null?: break
        case .string(let name)?: result.name = name
        default: throw NameError(message: "`name` is not a string")
        }
        switch value["recipes"] {
        case nil, .null?: break
        case .list(let recipes)?:
            result.recipes = try recipes.map { recipe throws(NameError) in
                guard case .string(let text) = recipe else {
                    throw NameError(message: "`recipes` contains an element that is not a string")
                }
                return text
            }
            if recipes.isEmpty { throw NameError(message: "`recipes` is empty") }
        default: throw NameError(message: "`recipes` is not a list")
        }
        return result
    }
}

/// Reads CSV (RFC 4180) with the header columns `source`, `name` and `recipes` in any order. `name` and `recipes` are
/// optional. Several recipes are separated by `;`. Quoted fields may contain commas, line breaks and doubled quotes.
final class CSVReader: EntryReader {
    private let lines: LineReader
    private var columns: [String]?
    private var isDone = false

    init(_ lines: LineReader) { self.lines = lines }

    func next() -> BatchEntry? {
        while !isDone {
            let number = lines.line
            do throws(NameError) {
                guard let fields = try nextRecord() else { break }
                if fields == [""] { continue }
                if let columns { return .source(try source(fields, columns)) }
                columns = try header(fields)
            } catch {
                // Without a valid header, the rest cannot be interpreted.
                isDone = columns == nil
                return lines.failed(line: number, error.message)
            }
        }
        return lines.takeFailure()
    }

    private func header(_ fields: [String]) throws(NameError) -> [String] {
        let header = fields.map { $0.trimmed.lowercased() }
        for name in header where !manifestNames.contains(name) {
            throw NameError(message: "unknown column `\(name)`; expected source, name or recipes")
        }
        guard header.contains("source") else { throw NameError(message: "the column `source` is missing") }
        guard Set(header).count == header.count else { throw NameError(message: "a column name appears twice") }
        return header
    }

    private func source(_ fields: [String], _ columns: [String]) throws(NameError) -> BatchSource {
        guard fields.count == columns.count else {
            throw NameError(message: "\(fields.count) fields, but the header has \(columns.count)")
        }
        var result = BatchSource(source: "")
        for (column, field) in zip(columns, fields) {
            switch column {
            case "source": result.source = field.trimmed
            case "name": result.name = field.isEmpty ? nil : field
            default:
                let recipes = field.split(separator: ";").map { String($0).trimmed }.filter { !$0.isEmpty }
                result.recipes = recipes.isEmpty ? nil : recipes
            }
        }
        guard !result.source.isEmpty, !result.source.utf8.contains(0) else {
            throw NameError(message: "`source` is empty or contains a NUL character")
        }
        return result
    }

    /// Returns the next record, or nil at the end.
    private func nextRecord() throws(NameError) -> [String]? {
        guard lines.peek() != nil else { return nil }
        var fields: [String] = []
        var size = 0
        while true {
            var bytes: [UInt8] = []
            if lines.peek() == 0x22 {
                _ = lines.take()
                var isClosed = false
                while let byte = lines.take() {
                    if byte == 0x22 {
                        guard lines.peek() == 0x22 else {
                            isClosed = true
                            break
                        }
                        _ = lines.take()
                    }
                    bytes.append(byte)
                    if size + bytes.count > LineReader.lineLimit {
                        throw skippingLine("the record exceeds the limit of 1 MiB; check for a missing quote")
                    }
                }
                guard isClosed else { throw NameError(message: "the closing quote of a field is missing") }
            } else {
                while let byte = lines.peek(), byte != 0x2C, byte != 0x0A, byte != 0x0D {
                    if byte == 0x22 {
                        throw skippingLine(
                            "an unquoted field contains a quote; put the field in quotes and double the quote")
                    }
                    if size + bytes.count > LineReader.lineLimit {
                        throw skippingLine("the record exceeds the limit of 1 MiB")
                    }
                    bytes.append(byte)
                    _ = lines.take()
                }
            }
            size += bytes.count
            guard let field = String(validating: bytes, as: UTF8.self) else {
                throw skippingLine("a field is not valid UTF-8")
            }
            fields.append(field)
            switch lines.take() {
            case 0x2C: continue
            case nil, 0x0A: return fields
            case 0x0D where lines.peek() == nil || lines.peek() == 0x0A:
                _ = lines.take()
                return fields
            default: throw skippingLine("expected a comma or the end of the line after a quoted field")
            }
        }
    }

    /// Returns the error for a record and skips the rest of its line.
    private func skippingLine(_ message: String) -> NameError {
        _ = try? lines.nextLine()
        return NameError(message: message)
    }
}

/// Reads standard input and detects its format: JSON Lines if it begins with `{`, CSV if it begins with a manifest's
/// header, and one source per line otherwise.
final class SniffingReader: EntryReader {
    private let lines: LineReader
    private var reader: (any EntryReader)?

    init(_ lines: LineReader) { self.lines = lines }

    func next() -> BatchEntry? {
        if let reader { return reader.next() }
        let chosen: any EntryReader =
            switch lines.peek() {
            case UInt8(ascii: "{"): SourceLinesReader(lines, SourceLinesReader.fromJSON)
            default: lines.beginsWithHeader ? CSVReader(lines) : SourceLinesReader(lines)
            }
        reader = chosen
        return chosen.next()
    }
}

extension String {
    /// The string without whitespace at both ends.
    var trimmed: String {
        guard let first = firstIndex(where: { !$0.isWhitespace }),
            let last = lastIndex(where: { !$0.isWhitespace })
        else { return "" }
        return String(self[first...last])
    }
}
