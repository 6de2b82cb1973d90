import HTTPCaching
import PipelineCaching
import PipelineFetching
import PipelineSupport

/// Stores the objects of an `ObjectTier` in a bucket, or under a prefix of one.
struct S3ObjectStore: ObjectStore {
    private let transport: S3Transport
    /// The URL of the entries, `s3://BUCKET/PREFIX/`.
    private let location: String
    private let prefix: String

    init(_ configuration: RemoteConfiguration, _ transport: S3Transport) {
        self.transport = transport
        (location, prefix) = (configuration.location, configuration.folder)
    }

    func get(_ key: String, isLong: Bool) async throws(StoreError) -> ObjectAnswer {
        try await asking(key) { (object) async throws(FetchError) in
            let response = try await transport.object(object, acceptsFile: isLong)
            let now = response.clock.map { $0 - response.responseTime }
            guard response.status == 200 else { return ObjectAnswer(body: nil, clockOffset: now ?? 0) }
            let written = response.time("last-modified")
            let age = written.flatMap { written in response.clock.map { max(0, $0 - written) } }
            return ObjectAnswer(
                body: response.file.map { .file($0) } ?? .bytes(response.body), age: age, clockOffset: now ?? 0)
        }
    }

    func holds(_ key: String) async throws(StoreError) -> Bool {
        try await asking(key) { (object) async throws(FetchError) in
            try await transport.object(object, firstByteOnly: true).status != 404
        }
    }

    func put(_ key: String, _ body: [UInt8], type: String) async throws(StoreError) {
        try await asking(key) { (object) async throws(FetchError) in
            try await transport.put(body, to: object, [HeaderField("Content-Type", type)])
        }
    }

    func delete(_ key: String) async throws(StoreError) {
        try await asking(key) { (object) async throws(FetchError) in try await transport.remove(object) }
    }

    func list(_ prefix: String, after next: String?) async throws(StoreError) -> ObjectPage {
        try await asking(prefix, isFolder: true) { (folder) async throws(FetchError) in
            let page = try await transport.list(folder, after: next)
            return ObjectPage(
                objects: page.objects.map { (String($0.key.dropFirst(self.prefix.count)), $0.size) }, next: page.next)
        }
    }

    /// Returns the same message for all keys and operations, so that each cause is logged once. The message refers to
    /// the settings of this bucket.
    private static func message(_ error: FetchError, _ key: String) -> String {
        let setting = "the setting `remote.s3`"
        var text = error.message.replacing(key, with: "").replacing("the setting `s3`", with: setting)
            .replacing("; lower `fetch.perHost` or `fetch.rate`", with: "")
        // Removes the verb from "reading s3://BUCKET/" and "listing s3://BUCKET/".
        if let space = text.firstIndex(of: " "), text[space...].hasPrefix(" s3://") {
            text = String(text[space...].dropFirst())
        }
        switch error.code {
        case .unreachable, .unresolvable, .connectTimeout, .tls, .refusedAddress:
            return text + "; check `endpoint` and `region` of \(setting)"
        default: return text
        }
    }

    private func asking<Value: Sendable>(
        _ key: String, isFolder: Bool = false, _ body: (SourceURL) async throws(FetchError) -> Value
    ) async throws(StoreError) -> Value {
        let url: SourceURL?
        do throws(SourceError) { url = try SourceURL(s3: location + key, isFolder: isFolder) } catch {
            throw StoreError(.invalid, "the bucket of `remote.s3`: \(error.message)")
        }
        guard let url else {
            throw StoreError(.invalid, "the name of the bucket in `remote.s3` is missing; set `bucket`")
        }
        do throws(FetchError) { return try await body(url) } catch {
            let code: StoreError.Code =
                switch error.code {
                case .cancelled: .skipped
                case .timeout, .connectTimeout, .stalled: .timedOut
                default: .unavailable
                }
            throw StoreError(code, Self.message(error, key))
        }
    }
}

extension FetchedResponse {
    /// The clock of the responding server in Unix seconds, or nil if the response has no `Date`.
    fileprivate var clock: Double? { time("date") }

    fileprivate func time(_ name: String) -> Double? {
        fields.first(name).flatMap { HTTPDate.unixSeconds($0, now: responseTime) }.map(Double.init)
    }
}
