import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Several nodes behind a proxy that hashes by source, and one behind Caddy, with the proxies' files of `deploy/`.
    @Suite struct Hashing {
        static let repository = Samples.folder + "/.."
        static let programs: [String] = [
            "/usr/sbin/nginx", "/usr/sbin/haproxy", "/usr/bin/caddy", "/usr/bin/python3", "/usr/bin/openssl",
        ]

        /// `Tests/Fleet/hashing_test.py` has the checks.
        @Test(
            .enabled(
                if: programs.allSatisfy { access($0, X_OK) == 0 },
                "needs Debian's nginx, haproxy and caddy (scripts/install-dependencies proxies)"))
        func `three nodes behind a proxy fetch and render once, and one that leaves moves its share`() async throws {
            let checks = try HelperProgram([
                "timeout", "--kill-after=15", "600", "/usr/bin/python3",
                Self.repository + "/Tests/Fleet/hashing_test.py", ChildProgram.path,
            ])
            let status = await checks.end()
            #expect(status == 0, "\(checks.text)")
            #expect(checks.text.split(separator: "\n").last == "done")
        }
    }
}
