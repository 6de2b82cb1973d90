@testable import PipelineCaching
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Pipeline

@Suite struct DiskSpaceTests {
    let folder = CacheFolder()

    /// A file system with `free` bytes left, besides the bytes that the store holds.
    private final class Volume: Sendable {
        let free: Atomic<Int>
        init(free: Int) { self.free = Atomic(free) }
    }

    private func put(_ number: Int, in store: DiskStore) throws {
        let body = bytes(1_000, seed: number)
        var entry = variant("\(number)", of: digest([]), body)
        entry.cost = Double(1 + number)
        try store.storeVariant(entry, body: body, generation: 1)
    }

    @Test func `below the floor a newcomer is refused, counted, and what is there still answers`() throws {
        let volume = Volume(free: 10_000)
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 5_000
        let store = try DiskStore(folder: folder.path, configuration: configuration) { _ in
            FileSystemSpace(total: 1_000_000, free: volume.free.load(ordering: .relaxed))
        }
        for number in 0..<3 { try put(number, in: store) }
        // Another program has filled it; the cache gives way until nothing is left to give.
        volume.free.store(5_999, ordering: .relaxed)
        for number in 3..<5 {
            let error = #expect(throws: StoreError.self) { try put(number, in: store) }
            #expect(error?.code == .full && error?.message.contains("only 5999 bytes are free") == true)
        }
        let counters = try store.statistics().variants
        #expect(counters.refused == 2 && counters.entries == 0 && counters.evictions == 3)
        volume.free.store(6_000, ordering: .relaxed)
        try put(5, in: store)
        #expect(try store.statistics().variants.entries == 1)
        #expect(try store.verify().isClean)
    }

    @Test func `a file system with ample room is not asked for each small body, one with less for every body`() throws {
        let volume = Volume(free: 2_000_000_000)
        let asked = Atomic<Int>(0)
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 5_000
        let store = try DiskStore(folder: folder.path, configuration: configuration) { _ in
            asked.add(1, ordering: .relaxed)
            return FileSystemSpace(total: 4_000_000_000, free: volume.free.load(ordering: .relaxed))
        }
        try put(0, in: store)
        #expect(store.ampleUntil.load(ordering: .relaxed) > 0)
        // Simulates that time stands still.
        store.ampleUntil.store(.max, ordering: .relaxed)
        let before = asked.load(ordering: .relaxed)
        for number in 1..<20 { try put(number, in: store) }
        #expect(asked.load(ordering: .relaxed) == before)
        let large = bytes(1_500_000, seed: 1)
        try store.storeVariant(variant("large", of: digest([]), large), body: large, generation: 1)
        #expect(asked.load(ordering: .relaxed) > before)
        // Little space is left.
        volume.free.store(1_000_000_000, ordering: .relaxed)
        store.ampleUntil.store(0, ordering: .relaxed)
        try put(20, in: store)
        #expect(store.ampleUntil.load(ordering: .relaxed) == 0)
        let since = asked.load(ordering: .relaxed)
        for number in 21..<30 { try put(number, in: store) }
        #expect(asked.load(ordering: .relaxed) >= since + 9)
    }

    @Test func `as much is evicted as the file system lacks, and no more`() throws {
        let budget = Mutex(1_000_000)
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 100_000
        // The cache's entries take space, and release it.
        let held = Mutex<DiskStore?>(nil)
        defer { held.withLock { $0 = nil } }
        let store = try DiskStore(folder: folder.path, configuration: configuration) { _ in
            let bytes = held.withLock { $0 }.flatMap { try? $0.statistics().variants.bytes } ?? 0
            return FileSystemSpace(total: 10_000_000, free: budget.withLock { $0 } - bytes)
        }
        held.withLock { $0 = store }
        for number in 0..<20 { try put(number, in: store) }
        #expect(try store.statistics().variants.evictions == 0)
        let size = try store.statistics().variants.bytes / 20
        // Room for ten of them above the floor, once the next body is written.
        budget.withLock { $0 = 100_000 + 1_000 + 10 * size }
        try put(20, in: store)
        let counters = try store.statistics().variants
        #expect(counters.entries == 11 && counters.evictions == 10 && counters.refused == 0)
        #expect(try store.holdsVariant(key: digest(Array("19".utf8)), of: digest([])))
        #expect(try !store.holdsVariant(key: digest(Array("0".utf8)), of: digest([])))
        #expect(try store.verify().isClean)
    }

    @Test func `the floor is a gigabyte, or a twentieth where that is less, unless set`() throws {
        #expect(FileSystemSpace(total: 1_000_000_000_000, free: 0).ordinaryFloor == 1_000_000_000)
        #expect(FileSystemSpace(total: 1_000_000_000, free: 0).ordinaryFloor == 50_000_000)
        #expect(FileSystemSpace(total: 100_000_000, free: 0).ordinaryFloor == 16_000_000)
        let space = try #require(FileSystemSpace(holding: "/"))
        #expect(space.total > 0 && space.free <= space.total)
        // Where a folder will be.
        #expect(FileSystemSpace(holding: "/nowhere/at/all")?.total == space.total)
        #expect(FileSystemSpace(holding: "/etc/hostname/below") == nil)
        let unknown = try DiskStore(folder: folder.path) { _ in nil }
        try put(1, in: unknown)
        #expect(unknown.freeSpace() == nil)
        unknown.close()
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 0
        let none = try DiskStore(folder: folder.path, configuration: configuration) { _ in
            FileSystemSpace(total: 1, free: 0)
        }
        try put(2, in: none)
        #expect(try none.statistics().variants.entries == 2)
    }

    @Test(.enabled(if: SmallDisk.isPermitted, "needs leave to mount a tmpfs"))
    func `a file system that fills up keeps its floor`() throws {
        let disk = try #require(SmallDisk(at: folder.path, kilobytes: 32 << 10))
        defer { disk.unmount() }
        var configuration = DiskStoreConfiguration()
        configuration.freeSpace = 12_000_000
        let store = try DiskStore(folder: folder.path, configuration: configuration)
        defer { store.close() }
        let bodies = [bytes(1_000_000, seed: 1), bytes(20_000, seed: 2)]
        for number in 0..<80 {
            var body = bodies[number % 2]
            body[0] = UInt8(number)
            var entry = variant("\(number)", of: digest([]), body)
            entry.cost = Double(1 + number) * Double(body.count)
            try store.storeVariant(entry, body: body, generation: 1)
            // The log of the index is written beside what was reckoned with.
            let (free, floor) = try #require(store.freeSpace())
            #expect(floor == 12_000_000 && free > floor - 200_000, "\(free) after \(number)")
        }
        let counters = try store.statistics().variants
        #expect(counters.refused == 0 && counters.evictions > 20 && counters.entries > 15)
        #expect(try store.verify().isClean)
    }
}
