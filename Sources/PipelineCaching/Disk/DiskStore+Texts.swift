/// Strings in the index, such as a fleet's position in its stream of purges. If the index loses its last transactions
/// in a power failure, purges and position are lost together.
extension DiskStore {
    /// Returns all strings, indexed by name, and whether any record is stored.
    package func texts() throws(StoreError) -> (byName: [String: String], holdsRecords: Bool) {
        try perform { index throws(StoreError) in
            let row = try index.connection.first("SELECT 1 FROM records LIMIT 1") { $0.integer(0) }
            return (Dictionary(try index.connection.texts()) { first, _ in first }, row != nil)
        }
    }

    /// Stores strings after earlier purges have been applied. If a value is nil, removes the string.
    package func store(texts: [String: String?]) throws(StoreError) {
        try deleting { transaction, _ throws(StoreError) in
            for (name, text) in texts { try transaction.connection.store(text, named: name) }
        }
    }
}

extension SQLiteConnection {
    /// The prefix of strings in the table `state`. The other rows contain numbers. `/` is the character after `.`.
    private static let textMark = "text."

    func texts() throws(StoreError) -> [(String, String)] {
        try rows("SELECT name, value FROM state WHERE name >= 'text.' AND name < 'text/'") {
            (String($0.text(0).dropFirst(Self.textMark.count)), $0.text(1))
        }
    }

    func store(_ text: String?, named name: String) throws(StoreError) {
        if let text {
            try run("INSERT OR REPLACE INTO state VALUES (?1, ?2)", .text(Self.textMark + name), .text(text))
        } else {
            try run("DELETE FROM state WHERE name = ?1", .text(Self.textMark + name))
        }
    }
}
