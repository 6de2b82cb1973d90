/// Reports the wall-clock time of each part of a request. Read it from `ImageResponse.timings`.
public struct Timings: Sendable, Hashable {
    /// The time spent waiting for a render thread.
    public var queue: Duration
    /// The time spent fetching from the origin, including retries.
    public var fetch: Duration
    /// The time to open the original and read its header.
    public var decode: Duration
    /// The time for the steps of the recipe, including decoding, because libvips decodes only the pixels that the steps
    /// request.
    public var operations: Duration
    /// The time to encode the output format.
    public var encode: Duration
    /// The time to hand the result to the stores. The write to disk happens after the response.
    public var store: Duration
    /// The time from the request to the response, excluding `queue`.
    public var total: Duration

    /// Creates timings that are zero unless a value is specified.
    public init(
        queue: Duration = .zero, fetch: Duration = .zero, decode: Duration = .zero, operations: Duration = .zero,
        encode: Duration = .zero, store: Duration = .zero, total: Duration = .zero
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

extension Duration {
    package var milliseconds: Double { Double(components.seconds) * 1e3 + Double(components.attoseconds) / 1e15 }
}
