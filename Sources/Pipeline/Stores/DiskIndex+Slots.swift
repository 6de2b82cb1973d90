/// Slots of the pack. All of it inside a write transaction, so that no two bodies are given the same.
extension DiskIndex {
    /// A slot for so many bytes: the smallest free one that suffices, or new ones at the end.
    ///
    /// What this transaction has freed is not among them: until it commits, rows that another process reads name it, and
    /// a kill makes them last.
    func allocate(_ bytes: Int) throws(StoreError) -> Int {
        let units = PackFile.units(bytes)
        if units == 0 { return 0 }
        let connection = try connection
        let found = try connection.first(
            "SELECT place, units, hollow FROM free WHERE units >= ?1 ORDER BY units, place LIMIT 1", .integer(units)
        ) { (place: $0.count(0), units: $0.count(1), hollow: $0.integer(2)) }
        // One that reaches beyond the end is none: `verify` mends that.
        guard let found, found.place + found.units <= known.end else {
            let place = known.end
            setEnd(place + units)
            return place
        }
        try connection.run("DELETE FROM free WHERE place = ?1", .integer(found.place))
        if found.units > units {
            try connection.run(
                "INSERT INTO free VALUES (?1, ?2, ?3)", .integer(found.place + units), .integer(found.units - units),
                .integer(found.hollow))
        }
        return found.place
    }

    /// Sets where the slots end, in units: kept with the tiers, which every transaction writes.
    func setEnd(_ end: Int) {
        known.end = end
        states.variants.isChanged = true
    }

    func readEnd() throws(StoreError) -> Int {
        try connection.first("SELECT pack FROM tiers WHERE name = 'variants'") { $0.count(0) } ?? 0
    }

    /// Units that no file of small bodies has: four terabytes.
    private static let mostUnits = 1 << 32
    /// Bytes of small bodies that are written at once.
    private static let packedAtOnce = 1 << 20

    /// Gives a small body a slot. It is written before the transaction commits, with those beside it.
    func pack(_ bytes: [UInt8]) throws(StoreError) -> Int {
        if !hasPacked {
            // Once in each transaction: the file may have been deleted, and then nobody finds what is written to ours.
            if try pack.attach() { note(.originals) { $0.corrupt += 1 } }
            if known.end > Self.mostUnits { _ = try wrongSlots(repair: true) }
            hasPacked = true
        }
        let place = try allocate(bytes.count)
        packed.append((place, bytes))
        packedBytes += bytes.count
        if packedBytes > Self.packedAtOnce { try writePacked() }
        return place
    }

    func writePacked() throws(StoreError) {
        if packed.isEmpty { return }
        let bodies = packed
        (packed, packedBytes) = ([], 0)
        try pack.write(bodies)
    }

    /// Notes that a slot has lost the last row that named it.
    func free(_ place: Int, bytes: Int) {
        let units = PackFile.units(bytes)
        // What cannot be is damage, and nobody knows whose slot it was.
        if units > 0, place + units <= known.end { freed.append((place, units)) }
    }

    /// Ends the slots' part of a transaction: what it freed can be given away from the next one on.
    func closeSlots() throws(StoreError) {
        try writePacked()
        if hasPacked, configuration.fsync { try pack.sync() }
        let connection = try connection
        for slot in joined(freed) {
            var (place, units) = slot
            // The free slots that may touch it, the later one first.
            var beside = try connection.rows(
                "SELECT place, units FROM free WHERE place <= ?1 ORDER BY place DESC LIMIT 2", .integer(place + units)
            ) { (place: $0.count(0), units: $0.count(1)) }
            if let after = beside.first, after.place == place + units {
                try connection.run("DELETE FROM free WHERE place = ?1", .integer(after.place))
                units += after.units
                beside.removeFirst()
            }
            if let before = beside.first, before.place + before.units == place {
                try connection.run(
                    "UPDATE free SET units = ?2, hollow = 0 WHERE place = ?1", .integer(before.place),
                    .integer(before.units + units))
            } else {
                try connection.run(
                    "INSERT OR REPLACE INTO free VALUES (?1, ?2, 0)", .integer(place), .integer(units))
            }
        }
        freed = []
    }

    /// Slots in order, those that touch as one.
    private func joined(_ slots: [(place: Int, units: Int)]) -> [(place: Int, units: Int)] {
        var joined: [(place: Int, units: Int)] = []
        for slot in slots.sorted(by: { $0.place < $1.place }) {
            if let last = joined.last, last.place + last.units == slot.place {
                joined[joined.count - 1].units += slot.units
            } else {
                joined.append(slot)
            }
        }
        return joined
    }

    /// How much of the pack is free slots whose space is still taken.
    func freeShare() throws(StoreError) -> Double {
        let units = try connection.first("SELECT total(units) FROM free WHERE hollow = 0") { $0.real(0) } ?? 0
        return units / Double(max(1, try readEnd()))
    }

    /// Gives the space of free slots back to the file system, some at a time.
    /// - Returns: whether there are more.
    func shrinkPack(slots: Int) throws(StoreError) -> Bool {
        try write { connection throws(StoreError) in
            let found = try connection.rows(
                "SELECT place, units FROM free WHERE hollow = 0 ORDER BY place DESC LIMIT ?1", .integer(slots)
            ) { (place: $0.count(0), units: $0.count(1)) }
            for slot in found { try pack.punch(slot.place, units: slot.units) }
            if let last = found.last {
                try connection.run("UPDATE free SET hollow = 1 WHERE place >= ?1", .integer(last.place))
            }
            let last = try connection.first("SELECT place, units FROM free ORDER BY place DESC LIMIT 1") {
                (place: $0.count(0), units: $0.count(1))
            }
            if let last, last.place + last.units == known.end {
                try connection.run("DELETE FROM free WHERE place = ?1", .integer(last.place))
                setEnd(last.place)
            }
            try pack.truncate(to: known.end)
            return found.count == slots
        }
    }

    /// Slots that overlap, that are lost, and that lie beyond the end.
    func wrongSlots(repair: Bool) throws(StoreError) -> Int {
        let connection = try connection
        if isWriting { try closeSlots() }
        let end = isWriting ? known.end : try readEnd()
        let slots = try connection.rows(
            """
            SELECT place, (length + \(PackFile.unit - 1)) / \(PackFile.unit) AS units, 0 FROM variants
                WHERE place IS NOT NULL AND length > 0
            UNION SELECT place, (length + \(PackFile.unit - 1)) / \(PackFile.unit), 0 FROM originals
                WHERE place IS NOT NULL AND length > 0
            UNION ALL SELECT place, units, 1 FROM free ORDER BY 1
            """
        ) { (place: $0.count(0), units: $0.count(1), isFree: $0.integer(2) != 0) }
        var wrong = 0
        var at = 0
        for slot in slots {
            if slot.place != at { wrong += 1 }
            at = max(at, slot.place + slot.units)
        }
        if at != end { wrong += 1 }
        guard repair, wrong > 0 else { return wrong }
        // What no row names is free; of two bodies in one slot the checksum has told which is none.
        try connection.run("DELETE FROM free")
        at = 0
        for slot in slots where !slot.isFree {
            if slot.place > at {
                try connection.run(
                    "INSERT INTO free VALUES (?1, ?2, 0)", .integer(at), .integer(slot.place - at))
            }
            at = max(at, slot.place + slot.units)
        }
        setEnd(at)
        return wrong
    }
}
