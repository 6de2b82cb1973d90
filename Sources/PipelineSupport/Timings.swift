/// Wall-clock milliseconds for each part of one response; `total` excludes the time spent queued.
public struct Timings: Sendable, Hashable {
    /// Waiting for a render thread.
    public var queue: Double
    /// Asking the origin, retries included.
    public var fetch: Double
    /// Opening the original and reading its header.
    public var decode: Double
    /// The steps of the recipe, and decoding: libvips decodes as far as they ask for pixels.
    public var operations: Double
    /// Writing the output format.
    public var encode: Double
    /// Handing over to the stores; the write to disk happens after the answer.
    public var store: Double
    /// From the request to the answer, without `queue`.
    public var total: Double

    public init(
        queue: Double = 0, fetch: Double = 0, decode: Double = 0, operations: Double = 0, encode: Double = 0,
        store: Double = 0, total: Double = 0
    ) {
        self.queue = queue
        self.fetch = fetch
        self.decode = decode
        self.operations = operations
        self.encode = encode
        self.store = store
        self.total = total
    }
}
