import Pipeline

/// A human-readable table: aligned columns separated by two spaces, without trailing spaces.
struct TextTable: Sendable {
    enum Alignment: Sendable { case left, right }

    private let alignments: [Alignment]
    private var rows: [[String]] = []

    /// - Parameter columns: The title and alignment of each column. If all titles are empty, the table has no header
    ///   row.
    init(_ columns: [(title: String, alignment: Alignment)]) {
        alignments = columns.map(\.alignment)
        if columns.contains(where: { !$0.title.isEmpty }) { rows.append(columns.map(\.title)) }
    }

    /// Adds a row. Missing cells are empty. Line breaks and control characters are replaced with spaces.
    mutating func add(_ cells: String...) { add(cells) }

    mutating func add(_ cells: [String]) {
        let clean = cells.prefix(alignments.count).map(Self.plain)
        rows.append(clean + Array(repeating: "", count: alignments.count - clean.count))
    }

    /// Returns text without secrets in URLs, and with control characters, which could move a terminal's cursor,
    /// replaced with spaces.
    static func plain(_ text: String) -> String {
        let text = SourceURL.hidingSecrets(text)
        guard text.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) else { return text }
        var result = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            result.append(scalar.properties.generalCategory == .control ? " " : scalar)
        }
        return String(result)
    }

    /// All lines, each terminated by a line feed.
    var text: String {
        var widths = [Int](repeating: 0, count: alignments.count)
        for row in rows { for (column, cell) in row.enumerated() { widths[column] = max(widths[column], cell.count) } }
        var result = ""
        for row in rows {
            var line = ""
            for (column, cell) in row.enumerated() {
                let space = String(repeating: " ", count: widths[column] - cell.count)
                line += alignments[column] == .left ? cell + space : space + cell
                if column < row.count - 1 { line += "  " }
            }
            while line.last == " " { line.removeLast() }
            result += line + "\n"
        }
        return result
    }
}

enum Readable {
    /// Returns a number with its noun, for example `1 body` or `7 bodies`.
    static func count(_ number: Int, _ one: String, _ many: String) -> String {
        "\(number) \(number == 1 ? one : many)"
    }

    /// Returns a size in decimal units with three digits, for example `812 B`, `15.2 kB` or `1.3 MB`.
    static func bytes(_ count: Int) -> String {
        if count < 1000 { return "\(count) B" }
        var value = Double(count) / 1000
        for unit in ["kB", "MB", "GB"] {
            if value < 999.5 { return tenths(value) + " " + unit }
            value /= 1000
        }
        return tenths(value) + " TB"
    }

    /// Returns a number with one decimal if it is below 100, and without decimals otherwise.
    static func tenths(_ value: Double) -> String {
        if value >= 99.95 { return String(Int(value.rounded())) }
        let scaled = Int((value * 10).rounded())
        return "\(scaled / 10).\(scaled % 10)"
    }

    /// Returns a duration, for example `0.4 s`, `42 s`, `3 min 05 s` or `2 h 10 min`.
    static func duration(seconds: Double) -> String {
        if seconds < 10 { return tenths(max(0, seconds)) + " s" }
        let whole = Int(min(seconds, 1e9).rounded())
        if whole < 60 { return "\(whole) s" }
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : String(value) }
        if whole < 3600 { return "\(whole / 60) min \(two(whole % 60)) s" }
        return "\(whole / 3600) h \(two(whole % 3600 / 60)) min"
    }
}
