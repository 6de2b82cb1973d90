import Glibc
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import Pipeline
@testable import PipelineCaching
@testable import PipelineFetching

/// Buckets that refuse what they are asked, or cannot be reached.
@Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"))
struct BucketRefusalTests {
    private final class Warnings: Sendable {
        let texts = Mutex<[String]>([])
    }

    enum Cause: CaseIterable {
        case secret, accessKey, bucket, endpoint, region
    }

    private static func remote(_ endpoint: String) -> RemoteConfiguration {
        var remote = RemoteConfiguration(bucket: "cache")
        remote.store.endpoint = endpoint
        remote.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
        (remote.timeout, remote.storeTimeout) = (.seconds(60), .seconds(60))
        return remote
    }

    /// The warnings about a bucket that is asked for records of several sources.
    private static func warnings(
        _ remote: RemoteConfiguration, asking: (Tiers) async -> Void
    ) async throws -> [String] {
        let (transport, base) = remote.transport(FetchConfiguration())
        let warnings = Warnings()
        var configuration = TiersConfiguration(memory: MemoryBudgets(originals: 0, variants: 0))
        configuration.tiers = [remote.placement(transport)]
        configuration.warn = { text in warnings.texts.withLock { $0.append(text) } }
        let tiers = try Tiers(configuration, readers: OwnedThreads(count: 1))
        await asking(tiers)
        await tiers.close()
        await base.shutdown()
        return warnings.texts.withLock(\.self)
    }

    @Test(arguments: Cause.allCases)
    func `the log names the cause, and the setting that helps`(_ cause: Cause) async throws {
        let server = try BucketServer("rclone", "cache")
        defer { server.stop() }
        let elsewhere = try LoopbackOrigin { _ in
            .response(
                400, body: Array("<Error><Code>PermanentRedirect</Code><Region>eu-west-9</Region></Error>".utf8))
        }
        defer { elsewhere.stop() }
        let closed = try RefusingPort()
        var remote = Self.remote(server.endpoint)
        let says: String
        switch cause {
        case .secret:
            remote.store.credentials = .key(id: "ACCESSKEY", secret: "wrong")
            says = "`secretKey` in the setting `remote.s3`"
        case .accessKey:
            remote.store.credentials = .key(id: "WRONG", secret: "SECRETKEY")
            says = "`accessKey` in the setting `remote.s3`"
        case .bucket:
            remote.bucket = "missing"
            says = "the bucket `missing` does not exist"
        case .endpoint:
            remote.store.endpoint = "http://127.0.0.1:\(closed.port)"
            says = "`endpoint` and `region` of the setting `remote.s3`"
        case .region:
            remote.store.endpoint = elsewhere.url("")
            says = "the region `eu-west-9`; set `region` in the setting `remote.s3`"
        }
        let warnings = try await Self.warnings(remote) { tiers in
            for number in 0..<3 { _ = await tiers.records(of: "http://a.test/\(number)") }
            // A purge writes, reads and lists.
            _ = try? await tiers.purge(EntrySelection(sources: ["http://a.test/"]))
        }
        #expect(warnings.count == 1, "\(warnings)")
        #expect(warnings.first?.contains(says) == true, "\(warnings)")
        #expect(warnings.first?.contains("the setting `s3`") == false)
    }

    @Test func `another cause is logged too, and each one once`() async throws {
        let proxy = try FaultyProxy("http://127.0.0.1:\(try RefusingPort().port)")
        defer { proxy.stop() }
        let warnings = try await Self.warnings(Self.remote(proxy.endpoint)) { tiers in
            for fault in [FaultyProxy.Fault.expired, .busy, .expired, .busy] {
                proxy.does(fault)
                _ = await tiers.records(of: "http://a.test/")
            }
        }
        #expect(warnings.count == 2, "\(warnings)")
        #expect(warnings.first?.contains("expired") == true && warnings.last?.contains("limits the rate") == true)
    }
}
