@testable import PipelineCaching
import Glibc
import TestSupport
import Testing

@testable import Pipeline

/// A few rounds of what `scripts/kill-store` does at length.
@Suite struct StoreKillTests {
    let folder = CacheFolder()

    @Test func `processes killed at any point leave a folder that is whole and holds all they had stored`() async throws
    {
        mkdir(folder.path, 0o700)
        let rounds = 14
        let seed = Int.random(in: 0..<1_000_000)
        let harness = try HelperProgram([builtProgram("store-worker"), "kill", folder.path, "\(rounds)", "\(seed)"])
        let status = await harness.end()
        #expect(status == 0, "seed \(seed): \(harness.text)")
        #expect(harness.text.contains("rounds \(rounds),"))
    }

    /// A folder in which a process was killed after it had given a body its name.
    private func leaveUncommitted(_ body: [UInt8]) throws {
        let files = BodyFiles(folder: folder.path)
        _ = try files.createIntentFile(digest(body))
        try files.publish(try files.writeTemporary(.bytes(body), sync: false), as: digest(body), sync: false)
    }

    @Test(arguments: [false, true]) func `a body renamed in and never committed goes by its mark`(isOpen: Bool) throws {
        let store = try DiskStore(folder: folder.path)
        let body = bytes(100_000, seed: 1)
        let kept = bytes(100_000, seed: 2)
        // The new index begins at a later generation, so that no process mistakes its memory for this index's entries.
        let now = try store.generationNow()
        #expect(try store.storeVariant(variant("kept", of: digest([]), kept), body: kept, generation: now))
        try leaveUncommitted(body)
        try leaveUncommitted(kept)
        if isOpen {
            // Writers look for marks now and then.
            for number in 0..<64 {
                try store.storeVariant(variant("\(number)", of: digest([]), [1]), body: [1], generation: 1)
            }
        } else {
            try DiskStore(folder: folder.path).close()
        }
        #expect(!store.files.isThere(digest(body)) && store.files.isThere(digest(kept)))
        #expect(store.files.intents().isEmpty)
        #expect(try store.variant(key: digest(Array("kept".utf8)))?.body == kept)
        #expect(try store.verify().isClean)
    }

    @Test func `a body that was being written is deleted when the grace time has passed`() throws {
        var configuration = DiskStoreConfiguration()
        let files = BodyFiles(folder: folder.path)
        try DiskStore(folder: folder.path).close()
        let path = try files.writeTemporary(.bytes([1]), sync: false)
        try DiskStore(folder: folder.path, configuration: configuration).close()
        #expect(access(path, F_OK) == 0)
        configuration.graceSeconds = 0
        try DiskStore(folder: folder.path, configuration: configuration).close()
        #expect(access(path, F_OK) != 0)
    }

    @Test func `bodies of an index that was lost are deleted, in steps and across processes`() throws {
        let before = try DiskStore(folder: folder.path)
        for number in 0..<40 {
            let body = bytes(70_000, seed: number)
            try before.storeVariant(variant("\(number)", of: digest([]), body), body: body, generation: 1)
        }
        before.close()
        for suffix in ["", "-wal", "-shm"] { unlink("\(folder.path)/cache.sqlite\(suffix)") }
        let kept = bytes(70_000, seed: 3)
        var store = try DiskStore(folder: folder.path)
        func count() -> Int { BodyFiles.prefixes.reduce(0) { $0 + store.files.bodies(in: $1).count } }
        #expect(count() == 40)
        let now = try store.generationNow()
        // Stored again: by the first process that writes, which sweeps at the same time.
        #expect(try store.storeVariant(variant("kept", of: digest([]), kept), body: kept, generation: now))
        store.close()
        store = try DiskStore(folder: folder.path)
        #expect(try store.storeVariant(variant("next", of: digest([]), [1]), body: [1], generation: now))
        #expect(count() == 1)
        #expect(try store.variant(key: digest(Array("kept".utf8)))?.body == kept)
        #expect(try store.verify().isClean)
    }
}
