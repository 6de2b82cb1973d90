import PipelineSupport
import Synchronization

@testable import PipelineCaching

/// A bucket in memory, which several nodes see through views of their own. It counts, and does wrong what a test wants.
struct PlainObjectStore: ObjectStore {
    /// State that all views share.
    final class Bucket: Sendable {
        struct State {
            var objects: [String: (bytes: [UInt8], written: Double)] = [:]
            /// Requests, each as its method and the first letter of its key.
            var requests: [String] = []
            var inProgress = 0
            /// How often requests began when none was in progress.
            var roundTrips = 0
            var now = 1_000_000.0
        }
        let state = Mutex(State())
        /// Changes what is answered to a request for a key, or fails it.
        struct Fault: Sendable {
            var answer: @Sendable (_ key: String, _ bytes: [UInt8]?) -> Result<[UInt8]?, StoreError> = { .success($1) }
        }
        let fault = Mutex(Fault())

        var keys: [String] { state.withLock { $0.objects.keys.sorted() } }
        func count(_ request: String) -> Int { state.withLock { $0.requests.count { $0 == request } } }
        func pass(_ seconds: Double) { state.withLock { $0.now += seconds } }
        func faults(_ answer: @escaping @Sendable (String, [UInt8]?) -> Result<[UInt8]?, StoreError>) {
            fault.withLock { $0.answer = answer }
        }
        func works() { fault.withLock { $0 = Fault() } }

        fileprivate func answer(_ key: String, _ bytes: [UInt8]?) throws(StoreError) -> [UInt8]? {
            try fault.withLock(\.self).answer(key, bytes).get()
        }
    }

    let bucket: Bucket
    /// Seconds by which the bucket's clock is ahead of this node's.
    var clockOffset = 0.0
    /// Called before anything is written.
    var beforePut: @Sendable (_ key: String) async -> Void = { _ in }

    private func request<Value: Sendable>(
        _ method: String, _ key: String, _ body: (inout Bucket.State) -> Value
    ) async -> Value {
        bucket.state.withLock { state in
            state.requests.append("\(method) \(key.prefix(1))")
            if state.inProgress == 0 { state.roundTrips += 1 }
            state.inProgress += 1
        }
        // Concurrent requests are in progress at the same time.
        for _ in 0..<20 { await Task.yield() }
        return bucket.state.withLock { state in
            state.inProgress -= 1
            return body(&state)
        }
    }

    func get(_ key: String, isLong: Bool) async throws(StoreError) -> ObjectAnswer {
        let (found, now) = await request("GET", key) { ($0.objects[key], $0.now) }
        let bytes = try bucket.answer(key, found?.bytes)
        return ObjectAnswer(
            body: bytes.map { .bytes($0) }, age: found.map { now - $0.written }, clockOffset: clockOffset)
    }

    func holds(_ key: String) async throws(StoreError) -> Bool {
        let found = await request("HEAD", key) { $0.objects[key]?.bytes }
        return try bucket.answer(key, found) != nil
    }

    func put(_ key: String, _ body: [UInt8], type: String) async throws(StoreError) {
        await beforePut(key)
        _ = try bucket.answer(key, nil)
        await request("PUT", key) { $0.objects[key] = (body, $0.now) }
    }

    func delete(_ key: String) async throws(StoreError) {
        _ = try bucket.answer(key, nil)
        await request("DELETE", key) { $0.objects[key] = nil }
    }

    func list(_ prefix: String, after next: String?) async throws(StoreError) -> ObjectPage {
        _ = try bucket.answer(prefix, nil)
        return await request("LIST", prefix) { state in
            let objects = state.objects.filter { $0.key.hasPrefix(prefix) }.sorted { $0.key < $1.key }
            return ObjectPage(objects: objects.map { ($0.key, $0.value.bytes.count) }, next: nil)
        }
    }
}
