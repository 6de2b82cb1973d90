/// A transport without retries or a cache that fetches one URL, for `Benchmarks/run-fetch`.
@_spi(Benchmarks) public struct TransportProbe: Sendable {
    private let transport: CurlTransport
    private let url: SourceURL

    public init(_ configuration: FetchConfiguration, url text: String) throws {
        transport = CurlTransport(configuration)
        url = try SourceURL(text)
    }

    /// Fetches the URL and returns the body.
    public func fetch() async throws -> [UInt8] { try await transport.fetch(FetchRequest(url: url)).body }
}
