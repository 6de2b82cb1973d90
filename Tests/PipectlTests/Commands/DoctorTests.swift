import Dispatch
import Glibc
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct Doctor {
        private let site = CommandSite()

        private func findings(_ arguments: [String] = []) async throws -> (exit: Int32, all: [SettingValue]) {
            let ended = try await site.plain(["doctor", "--json", "--cache", site.cache] + arguments)
            return (ended.exit, ended.text.split(separator: "\n").map { SettingValue.parsed($0) })
        }

        private static func find(_ subject: String, _ all: [SettingValue]) -> [SettingValue] {
            all.filter { $0["subject"] == .string(subject) }
        }

        @Test func `what works, lacks and fails is told, and the exit code says which`() async throws {
            let trusting = ["--set", "heif.trusted=true"]
            let (exit, all) = try await findings(trusting)
            for subject in ["kernel", "machine", "libraries", "worker sandbox", "formats", "cache folder", "libcurl"] {
                #expect(!Self.find(subject, all).isEmpty, "\(subject)")
            }
            let lacks = all.contains { $0["state"] == .string("lacks") }
            #expect(exit == (lacks ? 1 : 0) && !all.contains { $0["state"] == .string("fails") })
            // A lack has a cost and a remedy.
            for finding in all where finding["state"] != .string("works") {
                #expect(finding["cost"] != nil && finding["remedy"] != nil, "\(finding.json)")
            }
            let inProcess = try await findings(trusting + ["--set", "render.isolation=inProcess"])
            let lock = try #require(Self.find("worker sandbox", inProcess.all).first)
            #expect(inProcess.exit == 1 && lock["state"] == .string("lacks") && lock["remedy"] != nil)
        }

        @Test func `an old libheif is a warning, which is no lack`() async throws {
            let (exit, all) = try await findings()
            let lacks = all.contains { $0["state"] == .string("lacks") }
            #expect(exit == (lacks ? 1 : 0))
            for finding in Self.find("libheif", all) {
                #expect(finding["state"] == .string("warns") && finding["remedy"] != nil, "\(finding.json)")
            }
            let warning = Finding.warns("libheif", "1.15.1", cost: "a", remedy: "b")
            #expect(Finding.exit([warning]) == .done && warning.text.hasPrefix("warns  libheif: 1.15.1"))
        }

        @Test func `places that the settings name are looked at, each with a finding`() async throws {
            let images = try FolderOrigin(folder: Samples.folder + "/originals", maxAge: 3600)
            defer { images.stop() }
            site.folder.write("web: 00112233445566778899aabbccddeeff\n", to: "keys.txt")
            let file = site.folder.write(
                """
                allowPrivateAddresses: ["127.0.0.1"]
                keysFile: keys.txt
                masks: \(Samples.folder)/masks
                baseURLs: {web: \(images.url("/")), pictures: "file://\(Samples.folder)/originals"}
                """, to: "good.yaml")
            let good = try await findings(["--config", file]).all
            for (subject, text) in [
                ("key file", "keys.txt"), ("masks", "/masks, "), ("baseURLs web", "answered 404"),
                ("baseURLs pictures", "/originals"),
            ] {
                let finding = Self.find(subject, good).first
                #expect(finding?["state"] == .string("works"), "\(subject): \(good.map(\.json))")
                #expect(finding?.json.contains(text) == true, "\(finding?.json ?? "")")
            }
            #expect(images.requests.count == 1 && Self.find("bucket", good).isEmpty && Self.find("fleet", good).isEmpty)
        }

        @Test func `places that lack are named with what that costs`() async throws {
            let port = try RefusingPort()
            defer { withExtendedLifetime(port) {} }
            let file = site.folder.write(
                """
                allowPrivateAddresses: ["127.0.0.1"]
                masks: no-masks
                overlays: no-overlays
                baseURLs: {web: \(port.url("/")), private: "http://10.0.0.1/", store: "s3://photos/"}
                s3: {endpoint: \(port.url("")), accessKey: a, secretKey: geheim}
                remote.s3: {bucket: cache, endpoint: \(port.url("")), accessKey: a, secretKey: geheim}
                fleet.redis: redis://:geheim@127.0.0.1:\(port.port)
                """, to: "bad.yaml")
            let (exit, all) = try await findings(["--config", file])
            #expect(exit == 1, "\(all.map(\.json))")
            for subject in [
                "masks", "overlays", "baseURLs web", "baseURLs private", "baseURLs store", "bucket", "fleet",
            ] {
                let finding = Self.find(subject, all).first
                #expect(finding?["state"] == .string("lacks"), "\(subject): \(all.map(\.json))")
                #expect(finding?["cost"] != nil && finding?["remedy"] != nil)
            }
            #expect(Self.find("baseURLs private", all).first?.json.contains("allowPrivateAddresses") == true)
            #expect(!all.map(\.json).joined().contains("geheim"))
        }

        @Test func `settings that are wrong are findings, and the rest is looked at nevertheless`() async throws {
            let settings = ["keysFile=nothere.txt", #"baseURLs={"p":"/nowhere"}"#, "retries=x"]
            let (exit, all) = try await findings(settings.flatMap { ["--set", $0] })
            let faults = Self.find("settings", all)
            #expect(exit == 2 && faults.count == 3, "\(all.map(\.json))")
            #expect(faults.allSatisfy { $0["state"] == .string("fails") })
            #expect(!Self.find("kernel", all).isEmpty && !Self.find("libcurl", all).isEmpty)
        }

        @Test func `a cache folder that cannot be used is a failure with its exit code`() async throws {
            site.folder.write("no folder", to: "file")
            let ended = try await site.plain(["doctor", "--cache", site.folder("file")])
            #expect(ended.exit == 7 && ended.text.contains("fails  cache folder:"), "\(ended.text)")
            #expect(ended.text.contains("effect: ") && ended.text.contains("fix: set --cache DIR"))
        }

        @Test func `without libvips it says so and what helps`() async throws {
            // A search path of the loader in which the name is no library.
            for name in ["libvips.so.42"] { site.folder.write("no library", to: "lib/" + name) }
            let ended = await
                (try ChildProgram(
                    ["doctor", "--cache", site.cache], folder: site.folder.path,
                    environment: ["LD_LIBRARY_PATH=\(site.folder("lib"))"])).end
            #expect(ended.exit == 6 && ended.text.contains("fails  libvips: "), "\(ended.text) \(ended.errors)")
        }

        @Test func `another libvips is loaded from where the setting says, in workers and without`() async throws {
            let places: [String] = ["x86_64", "aarch64"].map { (name: String) -> String in
                "/usr/lib/\(name)-linux-gnu/libvips.so.42"
            }
            let system = try #require(places.first { (place: String) in access(place, R_OK) == 0 })
            let link = site.folder("own.so")
            #expect(symlink(system, link) == 0)
            for isolation in ["workers", "inProcess"] {
                let mode = ["--set", "heif.trusted=true", "--set", "render.isolation=\(isolation)"]
                let usual = try await findings(mode)
                let own = try await findings(mode + ["--set", "libvips=\(link)"])
                #expect(own.exit == usual.exit && Self.find("formats", own.all) == Self.find("formats", usual.all))
                let none = try await findings(mode + ["--set", "libvips=/nowhere.so"])
                let finding = try #require(none.all.first { $0["state"] == .string("fails") })
                #expect(none.exit == 6 && finding.json.contains("the setting `libvips`"), "\(finding.json)")
            }
        }

        @Test func `kinds of file systems are told by the mount that holds the folder`() {
            let mounts = """
                22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
                30 22 0:20 / /tmp rw - tmpfs tmpfs rw
                31 22 0:21 / /mnt/a\\040b rw master:2 - nfs4 server:/x rw
                32 22 0:22 / /var/lib rw - overlay overlay rw
                33 22 0:23 / /home rw - fuse.sshfs host: rw
                broken line
                """
            func kind(_ folder: String) -> FileSystemKind? { FileSystemKind(holding: folder, mounts: mounts) }
            #expect(kind("/data")?.name == "ext4" && kind("/data")?.cost == nil)
            #expect(kind("/tmp/x")?.name == "tmpfs" && kind("/tmpx")?.name == "ext4")
            #expect(kind("/mnt/a b/cache")?.name == "nfs4" && kind("/mnt/a b/cache")?.cost != nil)
            #expect(kind("/var/lib/pipectl")?.cost?.contains("container") == true && kind("/home/x")?.cost != nil)
            #expect(FileSystemKind(holding: "/x", mounts: "") == nil)
        }
    }

    @Suite struct Health {
        private let site = CommandSite()

        @Test func `a server that answers is healthy, by its URL and by its settings`() async throws {
            try await RunningServer.with { server in
                let port = server.port
                for arguments in [
                    ["http://127.0.0.1:\(port)"], ["http://127.0.0.1:\(port)/ready"],
                    ["--ready", "http://localhost:\(port)/"],
                    ["--set", "listen=0.0.0.0:\(port)"], ["--set", "listen=127.0.0.1:\(port)", "--ready"],
                ] {
                    let ended = try await site.plain(["health", "--seconds", "60"] + arguments)
                    #expect(ended.exit == 0 && ended.errors.contains("answered 200"), "\(arguments): \(ended.errors)")
                }
                #expect(try await site.plain(["health", "-q", "--set", "listen=[::]:\(port)"]).errors.isEmpty)
                let other = try await site.plain(["health", "http://127.0.0.1:\(port)/nothing"])
                #expect(other.exit == 1 && other.errors.contains("answered 404"), "\(other.errors)")
            }
        }

        @Test func `nothing that listens, and one that is silent, are unhealthy`() async throws {
            let none = try await site.plain(["health", "--set", "listen=127.0.0.1:1"])
            #expect(none.exit == 1 && none.errors.contains("127.0.0.1 port 1"), "\(none.errors)")
            let gate = DispatchSemaphore(value: 0)
            let origin = try LoopbackOrigin { _ in
                gate.wait()
                return .response(200, [:], body: [])
            }
            let ended = try await site.plain(["health", origin.url("/"), "--seconds", "0.2"])
            gate.signal()
            origin.stop()
            #expect(ended.exit == 1 && !ended.errors.isEmpty, "\(ended.errors)")
            let socket = try await site.plain(["health", "--set", "listen=unix:/x.sock"])
            #expect(socket.exit == 1 && socket.errors.contains("cannot connect to unix:/x.sock"), "\(socket.errors)")
            for arguments in [["--set", "listen=fd:3"], ["ftp://x"], ["--seconds", "0"]] {
                #expect(try await site.plain(["health"] + arguments).exit == 2, "\(arguments)")
            }
        }
    }
}
