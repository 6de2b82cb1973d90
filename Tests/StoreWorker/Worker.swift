import Glibc
import Pipeline
import Variants

/// A worker that stores, looks up, removes and purges random entries in one cache folder, one call per `step`.
struct Worker {
    let folder: String
    let ledger: Ledger
    let id: Int
    var numbers: Numbers
    /// Errors that calls threw, by code: their number and the last one.
    private(set) var failures: [String: (count: Int, last: StoreError)] = [:]

    init(folder: String, ledger: Ledger, id: Int, seed: Int) {
        self.folder = folder
        self.ledger = ledger
        self.id = id
        numbers = Numbers(seed)
    }

    static func open(_ folder: String, budget: Int, graceSeconds: Int = 600) throws(StoreError) -> DiskStore {
        var configuration = DiskStoreConfiguration()
        configuration.originals = budget
        configuration.variants = budget
        configuration.graceSeconds = graceSeconds
        configuration.touchBatch = 16
        // The test is about kills, not timeouts: on a loaded machine a process may not be scheduled for seconds.
        configuration.busyMilliseconds = 120_000
        return try DiskStore(folder: folder, configuration: configuration)
    }

    /// Makes one random call.
    ///
    /// - Returns: what is wrong with an entry that was found; nil if nothing is.
    mutating func step(_ store: DiskStore) -> String? {
        do throws(StoreError) {
            switch numbers.below(100) {
            case 0..<42: try putVariant(store)
            case 42..<60: try putOriginal(store)
            case 60..<78: return try lookUpVariant(store)
            case 78..<90: return try lookUpOriginal(store)
            case 90..<94: try remove(store)
            case 94..<97: try purge(store)
            default: try freshen(store)
            }
        } catch {
            failures[error.code.description] = ((failures[error.code.description]?.count ?? 0) + 1, error)
            if error.code == .damaged { return "\(error)" }
        }
        return nil
    }

    private mutating func operation(_ kind: Operation.Kind, of count: Int) -> Operation {
        Operation(kind: kind, number: numbers.below(count), worker: id, begin: Operation.now())
    }

    private mutating func putVariant(_ store: DiskStore) throws(StoreError) {
        var operation = operation(.variant, of: Contents.keysPerWorker)
        operation.body = numbers.seed()
        operation.original = Contents.original(id, operation.number)
        let bytes = Contents.body(operation.body)
        let generation = try store.generationNow()
        let entry = Contents.variant(id, operation.number, body: bytes)
        ledger.begin(operation)
        ledger.end(isDone: try store.storeVariant(entry, body: bytes, generation: generation))
    }

    private mutating func putOriginal(_ store: DiskStore) throws(StoreError) {
        var operation = operation(.original, of: Contents.sourcesPerWorker)
        operation.body = numbers.seed()
        let bytes = Contents.body(operation.body)
        let generation = try store.generationNow()
        let record = Contents.record(id, operation.number, body: operation.body, bytes)
        ledger.begin(operation)
        ledger.end(isDone: try store.storeOriginal(record, body: bytes, generation: generation))
    }

    private mutating func lookUpVariant(_ store: DiskStore) throws(StoreError) -> String? {
        let (worker, number) = (numbers.below(4), numbers.below(Contents.keysPerWorker))
        guard let (entry, body) = try Contents.variant(worker, number, in: store) else { return nil }
        return Contents.digest(body) == entry.digest ? nil : "variant \(worker)/\(number) is torn"
    }

    private mutating func lookUpOriginal(_ store: DiskStore) throws(StoreError) -> String? {
        let seed = numbers.seed()
        guard let body = try store.originalBody(digest: Contents.digest(seed)) else { return nil }
        return body == Contents.body(seed) ? nil : "original \(seed) is torn"
    }

    private mutating func remove(_ store: DiskStore) throws(StoreError) {
        let operation = operation(.removal, of: Contents.sourcesPerWorker)
        ledger.begin(operation)
        _ = try store.removeRecord(source: Contents.source(id, operation.number), selection: .init())
        ledger.end(isDone: true)
    }

    private mutating func purge(_ store: DiskStore) throws(StoreError) {
        let operation = operation(.purge, of: Contents.sourcesPerWorker)
        ledger.begin(operation)
        let result = try store.purge(source: Contents.source(id, operation.number))
        ledger.end(isDone: true, digests: result.digests)
    }

    private mutating func freshen(_ store: DiskStore) throws(StoreError) {
        guard
            var record = try store.records(source: Contents.source(id, numbers.below(Contents.sourcesPerWorker))).first
        else { return }
        record.response.fields.append(HeaderField("Age", "1"))
        record.response.fields = record.response.fields.suffix(4)
        _ = try store.freshen(record)
    }
}
