public import Pipeline
import Synchronization

/// Connects a transport to the checks of `TransportConformance`: the transport to check, and a store of originals that
/// the checks fill.
///
/// ```swift
/// import Foundation
///
/// struct ArchiveBench: TransportBench {
///     let transport: any Transport
///     let folder: String  // The transport fetches the files in this folder.
///     func store(_ bytes: [UInt8], as name: String) async throws {
///         try Data(bytes).write(to: URL(filePath: "\(folder)/\(name)"))
///     }
///     func remove(_ name: String) async throws { try FileManager.default.removeItem(atPath: "\(folder)/\(name)") }
///     func url(of name: String) -> SourceURL { SourceURL(scheme: "archive", name: name) }
/// }
/// ```
public protocol TransportBench: Sendable {
    /// The transport to check.
    var transport: any Transport { get }
    /// Stores an original under a name and replaces any existing original. Names have up to 40 characters and contain
    /// no slash.
    func store(_ bytes: [UInt8], as name: String) async throws
    /// Removes an original.
    func remove(_ name: String) async throws
    /// Returns the URL from which the transport fetches an original.
    func url(of name: String) throws -> SourceURL
}

/// Checks that a `Transport` meets the requirements of the protocol. Run all checks in the tests of your transport,
/// each against an empty store of originals:
///
/// ```swift
/// func violations(by makeBench: () -> any TransportBench) async -> [String] {
///     var found: [String] = []
///     for check in TransportConformance.checks {
///         found += await TransportConformance.violations(of: check, by: makeBench())
///     }
///     return found
/// }
/// ```
///
/// `PipelineTests` runs all checks against http, files, and a custom transport.
public enum TransportConformance {
    /// A requirement of `Transport`.
    public struct Check: Sendable, CustomStringConvertible {
        /// The requirement, as a sentence.
        public let description: String
        let run: @Sendable (Run) async throws -> Void

        init(_ description: String, _ run: @escaping @Sendable (Run) async throws -> Void) {
            self.description = description
            self.run = run
        }
    }

    /// Runs a check and returns the violations. Empty if the transport passes.
    public static func violations(of check: Check, by bench: any TransportBench) async -> [String] {
        let run = Run(bench)
        do {
            try await check.run(run)
        } catch {
            run.expect(false, "threw \(error)")
        }
        return run.violations.map { "\(check): \($0)" }
    }

    /// All checks.
    public static let checks: [Check] = [
        Check("an original of any length comes back byte for byte") { run in
            for length in [0, 1, 65_536, 5_000_001] {
                let body = sample(length)
                try await run.bench.store(body, as: "a")
                let response = try await run.fetch("a")
                run.expect(response.status == 200, "status \(response.status) for \(length) bytes")
                run.expect(response.content == body, "\(length) bytes come back as \(response.content?.count ?? -1)")
                run.expect(try response.finalURL == run.bench.url(of: "a"), "finalURL without a redirect")
                run.expect(response.requestTime <= response.responseTime, "the request was sent before its answer")
            }
        },
        Check("an entity tag is strong, and answers 304 without a body until the bytes change") { run in
            try await run.bench.store(sample(1000), as: "a")
            guard let tag = try await run.fetch("a").tag else {
                run.expect(!run.bench.transport.isLocal, "a local one needs a tag")
                return
            }
            run.expect(tag.hasPrefix("\"") && tag.hasSuffix("\"") && tag.utf8.count >= 2, "\(tag) is strong")
            let same = try await run.fetch("a", HeaderField("If-None-Match", tag))
            run.expect(same.status == 304 && same.content == [], "status \(same.status) for the same tag")
            run.expect(same.tag == tag, "a 304 repeats the tag")
            let other = try await run.fetch("a", HeaderField("If-None-Match", "\"another\""))
            run.expect(other.status == 200 && other.content == sample(1000), "status \(other.status) for another tag")
            try await run.bench.store(sample(1001), as: "a")
            let changed = try await run.fetch("a", HeaderField("If-None-Match", tag))
            run.expect(changed.status == 200 && changed.content == sample(1001), "the new bytes under the old tag")
            run.expect(changed.tag != tag, "the tag changes with the bytes")
        },
        Check("what is not there is missing, by a status or an error") { run in
            await run.expectMissing("never")
            try await run.bench.store(sample(10), as: "a")
            try await run.bench.remove("a")
            await run.expectMissing("a")
        },
        Check("a body over the request's limit is refused, one at the limit is not") { run in
            try await run.bench.store(sample(100_000), as: "a")
            let whole = try await run.fetch("a", limit: 100_000)
            run.expect(whole.content?.count == 100_000, "the limit itself")
            do throws(FetchError) {
                _ = try await run.fetch("a", limit: 99_999)
                run.expect(false, "one byte more than the limit was taken")
            } catch {
                run.expect(error.code == .tooLarge, "\(error.code.rawValue) instead of tooLarge")
                run.expect(!error.message.isEmpty, "the error says nothing")
            }
        },
        Check("names with spaces, signs and letters beyond ASCII are names of their own") { run in
            let names = ["a b", "a+b", "a%20b", "a&b=c", "\u{E9}", "e\u{301}", "日本", "a'b", "a;b", "a(1)", "A B"]
            for (index, name) in names.enumerated() { try await run.bench.store(sample(100 + index), as: name) }
            for (index, name) in names.enumerated() {
                let response = try await run.fetch(name)
                run.expect(response.content == sample(100 + index), "the original named `\(name)`")
            }
        },
        Check("any number of calls at a time get their own answers") { run in
            for index in 0..<16 { try await run.bench.store(sample(5000 + index), as: "n\(index)") }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for call in 0..<64 {
                    group.addTask {
                        let response = try await run.fetch("n\(call % 16)")
                        run.expect(response.content == sample(5000 + call % 16), "call \(call)")
                    }
                }
                try await group.waitForAll()
            }
        },
        Check("a call whose task is cancelled ends, and harms no other") { run in
            try await run.bench.store(sample(200_000), as: "a")
            let cancelled = Task { try? await run.fetch("a") }
            cancelled.cancel()
            let kept = try await run.fetch("a")
            run.expect(kept.content == sample(200_000), "another call")
            _ = await cancelled.value
        },
        Check("a shutdown returns, and so does one after it") { run in
            try await run.bench.store(sample(10), as: "a")
            _ = try await run.fetch("a")
            await run.bench.transport.shutdown()
            await run.bench.transport.shutdown()
        },
    ]
}

/// A check in progress.
final class Run: Sendable {
    let bench: any TransportBench
    private let found = Mutex<[String]>([])

    init(_ bench: any TransportBench) { self.bench = bench }

    var violations: [String] { found.withLock { $0 } }

    func expect(_ holds: Bool, _ what: String) { if !holds { found.withLock { $0.append(what) } } }

    func fetch(
        _ name: String, _ fields: HeaderField..., limit: Int? = nil
    ) async throws(FetchError) -> FetchedResponse {
        let url: SourceURL
        do { url = try bench.url(of: name) } catch { throw FetchError(.transport, "the bench has no URL: \(error)") }
        return try await bench.transport.fetch(
            FetchRequest(url: url, fields: fields, maxBytes: limit), onProgress: nil)
    }

    func expectMissing(_ name: String) async {
        do throws(FetchError) {
            let status = try await fetch(name).status
            expect(status == 404 || status == 410, "status \(status) for what is not there")
        } catch {
            expect(error.code == .missing, "\(error.code.rawValue) for what is not there")
        }
    }
}

extension FetchedResponse {
    /// The body, in memory or in a file.
    fileprivate var content: [UInt8]? { file.map { $0.bytes() } ?? body }
    fileprivate var tag: String? { fields.first { $0.name.lowercased() == "etag" }?.value }
}

/// Returns bytes that depend on the length.
private func sample(_ length: Int) -> [UInt8] { (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ length) } }
