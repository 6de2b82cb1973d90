import Glibc

/// Deleting what killed processes and lost indexes have left in the folder. All of it under the write lock, so that no
/// file goes that somebody is about to name; none of it fails a request, since what is left over is tried again.
extension DiskIndex {
    /// Files looked at by one step of a sweep.
    private static let sweepStep = 256

    /// Whether a row needs this file, or has it deleted soon.
    func isNamed(_ digest: Digest) throws(StoreError) -> Bool {
        if let key = DigestKey(digest), try filed(key) != nil { return true }
        return try connection.first("SELECT 1 FROM discarded WHERE digest = ?1", .text(digest)) { _ in true } ?? false
    }

    /// Deletes bodies that were renamed in by somebody who ended before the row was committed, and what was still being
    /// written by somebody who ended longer ago than the grace time.
    func reclaim() {
        for path in files.abandoned(after: configuration.graceSeconds) { unlink(path) }
        guard !files.marks().isEmpty else { return }
        try? connection.write { () throws(StoreError) in
            // Looked for again under the lock: whoever set one of these has committed or is gone.
            for mark in files.marks() {
                if try !isNamed(mark.digest) { files.remove(mark.digest) }
                unlink(mark.path)
            }
        }
    }

    /// Deletes some more of the bodies that an index left behind when it was replaced; how far it has come is a row.
    /// - Returns: false when it could not.
    @discardableResult
    func sweep() -> Bool {
        let isDone = try? connection.write { () throws(StoreError) in
            guard var at = try connection.first("SELECT value FROM state WHERE name = 'sweep'", read: { $0.count(0) })
            else { return true }
            var looked = 0
            while at < BodyFiles.prefixes.count, looked < Self.sweepStep {
                for digest in files.bodies(in: BodyFiles.prefixes[at]) {
                    looked += 1
                    if try !isNamed(digest) { files.remove(digest) }
                }
                at += 1
            }
            if at < BodyFiles.prefixes.count {
                try connection.run("UPDATE state SET value = ?1 WHERE name = 'sweep'", .integer(at))
                return false
            }
            try connection.run("DELETE FROM state WHERE name = 'sweep'")
            return true
        }
        if isDone == true { isSweeping = false }
        return isDone != nil
    }
}
