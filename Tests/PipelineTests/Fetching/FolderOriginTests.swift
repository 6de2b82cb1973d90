import Glibc
import Pipeline
import Synchronization
import TestSupport
import Testing

struct FolderOriginTests {
    @Test func `files come with validators, are confirmed by 304, and nothing outside the folder is served`()
        async throws
    {
        let folder = ScratchFolder()
        folder.write("picture", to: "a b.png")
        symlink("/etc/passwd", folder("link"))

        let log = Mutex<[String]>([])
        let origin = try FolderOrigin(folder: folder.path, maxAge: 60) { line in log.withLock { $0.append(line) } }
        defer { origin.stop() }
        var configuration = FetchConfiguration()
        configuration.allowPrivateAddresses = .all
        let transport = CurlTransport(configuration)
        defer { transport.shutdown() }

        let url = try SourceURL(origin.url("/a%20b.png"))
        let first = try await transport.fetch(FetchRequest(url: url))
        #expect(first.status == 200 && first.body == Array("picture".utf8))
        let kept = StoredResponse(
            status: 200, fields: first.fields, requestTime: first.requestTime, responseTime: first.responseTime)
        #expect(Freshness.lifetime(of: kept) == FreshnessLifetime(seconds: 60, basis: .maxAge))
        let conditions = Validation.conditionalFields(for: kept)
        #expect(conditions.count == 2)
        for fields in [conditions, [conditions[0]], [conditions[1]]] {
            let again = try await transport.fetch(FetchRequest(url: url, fields: fields))
            #expect(again.status == 304 && again.body.isEmpty)
            #expect(Validation.identifies(kept, notModified: again.fields))
        }
        for path in ["/none", "/", "/link", "/%2e%2e%2f%2e%2e/etc/passwd", "/..%2f..%2fetc%2fpasswd"] {
            let response = try await transport.fetch(FetchRequest(url: SourceURL(origin.url(path))))
            #expect(response.status == 404, "\(path)")
        }
        let lines = log.withLock { $0 }
        #expect(lines[0] == "GET /a%20b.png 200 7")
        #expect(lines[1] == "GET /a%20b.png 304 0")
    }
}
