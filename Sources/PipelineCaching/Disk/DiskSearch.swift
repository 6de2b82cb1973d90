import PipelineSupport

/// The position of a search through a folder. The search covers the entries that were stored before it began.
struct FolderSearch: Sendable {
    struct Piece: Sendable {
        var found: Set<ByteString>
        var next: FolderSearch
    }

    /// The number of rows that are read at a time. The search runs on a thread that look-ups also use.
    static let rowsAtOnce = 1_000

    fileprivate var row = 0
    /// The last row to read, or nil until it is known.
    fileprivate var lastRow: Int?
    /// The first name to read.
    fileprivate var name = ""
    var isAtEnd = false
}

extension DiskStore {
    /// Returns the sources in the next piece of the table of records.
    ///
    /// - Parameter texts: strings to search for. Records whose header fields contain none of these strings are not
    ///   decoded.
    func sources(
        in place: FolderSearch, containing texts: [String], where matches: (OriginalRecord) -> Bool
    ) throws(StoreError) -> FolderSearch.Piece {
        // Both values are blobs, so SQLite compares bytes.
        let contains = texts.indices.map { "instr(fields, ?\($0 + 3)) > 0" }.joined(separator: " OR ")
        return try piece(at: place, of: .records) { connection, rows throws(StoreError) in
            var values: [SQLiteValue] = [.integer(rows.lowerBound), .integer(rows.upperBound)]
            values += texts.map { .blob(Array($0.utf8)) }
            let found = try connection.recordRows(
                "WHERE id BETWEEN ?1 AND ?2 AND (\(texts.isEmpty ? "0" : contains))", values)
            return Set(found.compactMap(\.listed?.record).filter(matches).map { ByteString($0.source) })
        }
    }

    /// Returns the originals in the next piece of the table of variants.
    func originals(
        in place: FolderSearch, whereRecipe matches: (String) -> Bool
    ) throws(StoreError) -> FolderSearch.Piece {
        try piece(at: place, of: .variants) { connection, rows throws(StoreError) in
            let found = try connection.rows(
                "SELECT recipe, original FROM variants WHERE id BETWEEN ?1 AND ?2", .integer(rows.lowerBound),
                .integer(rows.upperBound)
            ) { (recipe: $0.text(0), original: $0.digestKey(1)) }
            return Set(found.filter { matches($0.recipe) }.compactMap { $0.original.map { ByteString($0.text) } })
        }
    }

    private func piece(
        at place: FolderSearch, of tier: DiskTable,
        _ search: (SQLiteConnection, ClosedRange<Int>) throws(StoreError) -> Set<ByteString>
    ) throws(StoreError) -> FolderSearch.Piece {
        let piece = try lookUp { view throws(StoreError) -> FolderSearch.Piece? in
            let (connection, table) = (view.connection, tier.rawValue)
            var next = place
            if place.lastRow == nil {
                next.lastRow = try connection.first("SELECT max(id) FROM \(table)") { $0.integer(0) }
            }
            let end = try connection.first(
                "SELECT max(id) FROM (SELECT id FROM \(table) WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3)",
                .integer(place.row), .integer(next.lastRow ?? 0), .integer(FolderSearch.rowsAtOnce)
            ) { $0.isNull(0) ? 0 : $0.integer(0) }
            guard let end, end > place.row else {
                next.isAtEnd = true
                return FolderSearch.Piece(found: [], next: next)
            }
            next.row = end
            return FolderSearch.Piece(found: try search(connection, (place.row + 1)...end), next: next)
        }
        return piece ?? FolderSearch.Piece(found: [], next: place.ended)
    }

    /// Returns the sources in the next piece of all names, in order.
    func sources(in place: FolderSearch, where matches: (String) -> Bool) throws(StoreError) -> FolderSearch.Piece {
        let names = try lookUp { view throws(StoreError) -> [String]? in
            try view.connection.sources(from: place.name, below: [0xFF], limit: FolderSearch.rowsAtOnce)
        }
        guard let names, let last = names.last else { return FolderSearch.Piece(found: [], next: place.ended) }
        var next = place
        // This is the next string in sort order.
        next.name = last + "\0"
        return FolderSearch.Piece(found: Set(names.filter(matches).map(ByteString.init)), next: next)
    }
}

extension FolderSearch {
    fileprivate var ended: FolderSearch {
        var place = self
        place.isAtEnd = true
        return place
    }
}
