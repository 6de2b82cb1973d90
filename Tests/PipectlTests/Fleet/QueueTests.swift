import Glibc
import HTTPCaching
import Pipeline
import PipelineFleet
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Batches over a queue in a real Redis server, with workers that are killed.
    @Suite(.enabled(if: RedisTestServer.isInstalled, "scripts/install-dependencies redis"))
    struct Queue {
        private static let originals = Samples.folder + "/originals"

        /// `pipectl batch` over the queue.
        private static func words(
            _ redis: RedisTestServer, _ folder: ScratchFolder, _ sources: [String], _ more: [String] = []
        ) -> [String] {
            ["batch"] + sources + [
                "-r", "thumbnail:20", "-o", folder("out"), "--queue", redis.url, "--report", folder("report.jsonl"),
                "--cache", folder("submitter"), "--json",
            ] + more
        }

        private static func worker(
            _ redis: RedisTestServer, _ folder: ScratchFolder, _ name: String, _ more: [String] = []
        ) throws -> ChildProgram {
            mkdir(folder("out"), 0o700)
            return try ChildProgram(
                [
                    "worker", "--queue", redis.url, "--cache", folder(name), "--unsigned", "--output", folder("out"),
                    "--output", "s3://small/", "--sources", originals,
                ] + (name.hasPrefix("w") || name.hasPrefix("v") ? ["--sources", folder("in")] : []) + more,
                folder: folder.path)
        }

        /// Returns the lines of an entry's result.
        private static func result(
            _ redis: RedisTestServer, _ folder: ScratchFolder, of source: BatchSource, output: String,
            _ more: [String] = bounds, key: String? = nil,
            sealed: (QueueEntry, [UInt8], BatchID) -> [UInt8] = { entry, _, _ in entry.bytes }
        ) async throws -> [ItemJSON] {
            let submitter = BatchSubmitter(RedisConnection.Configuration(try RedisURL(redis.url)))
            defer { submitter.close() }
            let options = QueueOptions(
                output: output, cacheControl: nil, nameTemplate: nil, policy: nil, inputs: ""
            ).bytes
            let item = BatchItem(
                source: source, index: 1, written: "thumbnail:20", canonical: "thumbnail:20x20",
                hasSeveralRecipes: false)
            try await submitter.create(options: options)
            let payload = sealed(try #require(QueueEntry([item])), options, submitter.id)
            #expect(try await submitter.submit([payload], from: 0) == 1)
            try await submitter.finish(total: 1)
            let words = ["worker", "--queue", redis.url, "--cache", folder("worker"), "--batch", "\(submitter.id)"]
            let ended = try await ChildProgram(
                words + more.map { $0.replacing("FOLDER", with: folder.path) }, folder: folder.path,
                environment: key.map { ["PIPECTL_QUEUE_KEY=\($0)"] } ?? []
            ).end
            #expect(ended.exit == 0, "\(ended.errors)")
            let result = try #require(try await submitter.results().first)
            return String(decoding: result.payload, as: UTF8.self).split(separator: "\n").compactMap {
                ItemJSON(line: $0)
            }
        }

        private static let bounds = ["--unsigned", "--output", "FOLDER/out", "--sources", "FOLDER/in"]

        @Test func `an entry of the queue writes and reads nothing outside the worker's folders`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let picture = ScratchFolder.bytes(at: Self.originals + "/night-tiny.jpg") ?? []
            for name in ["in", "out", "other", "other/in", "home"] { mkdir(folder(name), 0o700) }
            for name in ["in/a.jpg", "in/.b.jpg", "other/c.jpg"] { _ = folder.write(picture, to: name) }
            symlink(folder("other"), folder("out/link"))
            symlink(folder("other/c.jpg"), folder("in/link.jpg"))
            symlink(folder("other/new.jpg"), folder("out/file.jpg"))
            mkfifo(folder("out/pipe.jpg"), 0o600)
            let good = BatchSource(source: folder("in/a.jpg"))
            func named(_ name: String) -> BatchSource { BatchSource(source: folder("in/a.jpg"), name: name) }
            let cases: [(BatchSource, String, PipelineError.Code)] = [
                (named("authorized_keys"), folder("home"), .outputRefused),
                (named("authorized_keys"), folder("out/../home"), .outputRefused),
                (named("authorized_keys"), "home", .outputRefused), (good, folder("outer"), .outputRefused),
                (good, "s3://bucket/", .outputRefused), (named("authorized_keys"), folder("out/.ssh"), .outputRefused),
                (named(".ssh/authorized_keys"), folder("out"), .outputRefused),
                (good, folder("out/link"), .outputRefused), (named("link/a"), folder("out"), .outputRefused),
                (named("../home/authorized_keys"), folder("out"), .badName),
                (named("file.jpg"), folder("out"), .outputFailed), (named("pipe.jpg"), folder("out"), .outputFailed),
                (BatchSource(source: folder("other/c.jpg")), folder("out"), .sourceRefused),
                (BatchSource(source: folder("in/../other/c.jpg")), folder("out"), .sourceRefused),
                (BatchSource(source: "other/c.jpg"), folder("out"), .sourceRefused),
                (BatchSource(source: "file://" + folder("other/c.jpg")), folder("out"), .sourceRefused),
                (BatchSource(source: folder("in/link.jpg")), folder("out"), .notFound),
                (BatchSource(source: folder("in/.b.jpg")), folder("out"), .notFound),
                (BatchSource(source: "http://127.0.0.1:1/a.jpg"), folder("out"), .sourceRefused),
                (BatchSource(source: "s3://bucket/a.jpg"), folder("out"), .sourceRefused),
            ]
            for (source, output, code) in cases {
                let lines = try await Self.result(redis, folder, of: source, output: output)
                #expect(lines.map(\.error?.code) == [code], "\(source.source) \(source.name ?? "") \(output): \(lines)")
            }
            #expect(folder.names("home").isEmpty && folder.names("other").sorted() == ["c.jpg", "in"])
            #expect(folder.names("out").sorted() == ["file.jpg", "link", "pipe.jpg"])
            let lines = try await Self.result(redis, folder, of: named("new/b.jpg"), output: folder("out/2026"))
            #expect(lines.map(\.written) == [true] && folder.bytes("out/2026/new/b.jpg") != nil, "\(lines)")
        }

        @Test func `an entry of the queue is rendered only if its batch signed it`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let key = "0123456789abcdef"
            let real = try #require(QueueKey(key))
            let other = try #require(QueueKey("0123456789abcdeF"))
            for name in ["in", "out"] { mkdir(folder(name), 0o700) }
            let picture = ScratchFolder.bytes(at: Self.originals + "/night-tiny.jpg") ?? []
            let source = BatchSource(source: folder.write(picture, to: "in/a.jpg"))
            let signed = ["--output", "FOLDER/out", "--sources", "FOLDER/in"]
            typealias Seal = (QueueEntry, [UInt8], BatchID) -> [UInt8]
            let forged: [Seal] = [
                { entry, _, _ in entry.bytes }, { other.signed($0.bytes, $1, of: $2) },
                { entry, options, _ in real.signed(entry.bytes, options, of: BatchID()) },
                { entry, options, id in real.signed(entry.bytes, options + [0x20], of: id) },
                { real.signed($0.bytes, $1, of: $2) + [0x20] },
                { entry, _, _ in Array(String(repeating: "0", count: 64).utf8) + entry.bytes },
            ]
            for (number, seal) in forged.enumerated() {
                let lines = try await Self.result(
                    redis, folder, of: source, output: folder("out"), signed, key: key, sealed: seal)
                #expect(lines.map(\.error?.code) == [.notSigned], "\(number): \(lines)")
            }
            #expect(folder.names("out").isEmpty)
            for (more, key, seal) in [
                (signed, key, { real.signed($0.bytes, $1, of: $2) }), (signed + ["--unsigned"], key, forged[0]),
                (signed + ["--unsigned"], nil, forged[0]),
            ] as [([String], String?, Seal)] {
                let lines = try await Self.result(
                    redis, folder, of: source, output: folder("out"), more, key: key, sealed: seal)
                #expect(lines.map(\.error) == [nil], "\(lines)")
            }
            let refused = try await Self.result(
                redis, folder, of: source, output: folder("out"), signed + ["--unsigned"], key: key, sealed: forged[1])
            #expect(refused.map(\.error?.code) == [.notSigned])
            let none = try await ChildProgram.run(["worker", "--queue", redis.url, "--once"], folder: folder.path)
            #expect(none.exit == 2 && none.errors.contains("PIPECTL_QUEUE_KEY"), "\(none.errors)")
        }

        @Test func `a batch signs its entries with the key of the workers`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let environment = ["PIPECTL_QUEUE_KEY=0123456789abcdef"]
            mkdir(folder("out"), 0o700)
            let worker = try ChildProgram(
                [
                    "worker", "--queue", redis.url, "--cache", folder("one"), "--output", folder("out"), "--sources",
                    Self.originals,
                ], folder: folder.path, environment: environment)
            let picture = Self.originals + "/grey.jpg"
            let unsigned = try await ChildProgram.run(Self.words(redis, folder, [picture]), folder: folder.path)
            #expect(unsigned.exit == 1 && unsigned.errors.contains("PIPECTL_QUEUE_KEY"), "\(unsigned.errors)")
            #expect(Self.lines(folder).map(\.error?.code) == [.notSigned])
            let signed = try await ChildProgram(
                Self.words(redis, folder, [picture]), folder: folder.path, environment: environment
            ).end
            #expect(signed.exit == 0 && !signed.errors.contains("PIPECTL_QUEUE_KEY"), "\(signed.errors)")
            #expect(Self.lines(folder).map(\.written) == [true])
            worker.signal(SIGTERM)
            #expect(await worker.end.exit == 0)
        }

        private static func lines(_ folder: ScratchFolder) -> [ItemJSON] {
            String(decoding: folder.bytes("report.jsonl") ?? [], as: UTF8.self).split(separator: "\n")
                .compactMap { ItemJSON(line: $0) }
        }

        private static func keys(_ redis: RedisTestServer) throws -> String {
            let client = try HelperProgram(["redis-cli", "-p", "\(redis.port)", "KEYS", "*"])
            _ = client.waitForEnd()
            return client.text
        }

        /// Contents of the files in a folder, sorted.
        private static func contents(_ folder: ScratchFolder, _ name: String) -> [[UInt8]] {
            folder.names(name).map { folder.bytes(name + "/" + $0) ?? [] }
                .sorted { $0.lexicographicallyPrecedes($1) }
        }

        @Test func `workers of a queue write what a batch writes, and report each item`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let workers = [try Self.worker(redis, folder, "one"), try Self.worker(redis, folder, "two")]
            let queued = try await ChildProgram.run(
                Self.words(redis, folder, [Self.originals], ["-r", "thumbnail:30,circle,png"]), folder: folder.path)
            #expect(queued.exit == 0, "\(queued.errors)")
            let plain = try await ChildProgram.run(
                [
                    "batch", Self.originals, "-r", "thumbnail:20", "-r", "thumbnail:30,circle,png", "-o",
                    folder("plain"), "--cache",
                    folder("submitter"), "--json",
                ], folder: folder.path)
            #expect(plain.exit == 0)
            let isEqual = Self.contents(folder, "out") == Self.contents(folder, "plain")
            #expect(isEqual)
            let lines = Self.lines(folder)
            #expect(Set(lines.map { "\($0.source) \($0.recipe)" }).count == lines.count)
            #expect(lines.count == 48 && lines.allSatisfy { $0.outcome == .rendered && $0.written == true })
            for count in [#""items":48"#, #""written":48"#, #""rendered":48"#, #""interrupted":false"#] {
                #expect(queued.text.contains(count) && plain.text.contains(count), "\(queued.text)")
            }
            #expect(try !Self.keys(redis).contains("batch:"))
            for worker in workers {
                worker.signal(SIGTERM)
                #expect(await worker.end.exit == 0)
            }
        }

        @Test func `the password comes from the environment or a file, and is shown nowhere`() async throws {
            let redis = try RedisTestServer("--requirepass", "geheim")
            let folder = ScratchFolder()
            let url = redis.url.replacing("//", with: "//:geheim@")
            let file = folder.write("fleet: {redis: \"\(url)\"}\n", to: "pipectl.yaml")
            let source = Self.originals + "/night-tiny.jpg"
            let batch = ["batch", source, "-r", "thumbnail:20", "--cache", folder("submitter"), "-o", folder("out")]
            func child(_ arguments: [String], _ environment: [String] = []) throws -> ChildProgram {
                try ChildProgram(arguments, folder: folder.path, environment: environment)
            }
            // With a URL without password and with none, in both commands.
            mkdir(folder("out"), 0o700)
            let worker = try child([
                "worker", "--queue", redis.url, "--config", file, "-v", "--cache", folder("worker"), "--unsigned",
                "--output", folder("out"), "--sources", Self.originals,
            ])
            for (arguments, environment) in [
                (["--queue"], ["PIPECTL_QUEUE=\(url)"]), (["--queue", redis.url], ["PIPECTL_QUEUE=\(url)"]),
                (["--queue", redis.url, "--config", file], []), (["--queue", "--config", file], []),
            ] {
                let ended = try await child(batch + arguments, environment).end
                #expect(ended.exit == 0 && ended.errors.contains("1 item"), "\(arguments): \(ended.errors)")
                #expect(!(ended.errors + ended.text).contains("geheim"))
            }
            worker.signal(SIGTERM)
            let ended = await worker.end
            #expect(ended.exit == 0 && !ended.errors.contains("geheim"), "\(ended.errors)")
            let last = try await child(
                ["worker", "--once", "--unsigned", "--cache", folder("worker")], ["PIPECTL_QUEUE=\(url)"]
            ).end
            #expect(last.exit == 0, "\(last.errors)")

            // Another server's password is not sent, and errors and settings show none.
            let other = ["PIPECTL_QUEUE=redis://:geheim@127.0.0.1:1"]
            let refused = try await child(
                ["worker", "--once", "--unsigned", "--queue", redis.url, "--cache", folder("w")], other
            ).end
            #expect(refused.exit == 4 && refused.errors.contains("requires a password"), "\(refused.errors)")
            #expect(!refused.errors.contains("geheim"))
            for (arguments, environment) in [
                (["worker"], ["PIPECTL_QUEUE=redis://:geheim@/x?"]), (["worker"], []), (["settings"], other),
            ] {
                let ended = try await child(arguments, environment).end
                #expect(ended.exit == (arguments == ["settings"] ? 0 : 2), "\(ended.errors)")
                #expect(!(ended.errors + ended.text).contains("geheim"), "\(ended.errors)")
            }
            let told = try await child(["worker", "--once", "--unsigned", "--queue", url, "--cache", folder("worker")])
                .end
            #expect(told.exit == 0 && told.errors.contains("set PIPECTL_QUEUE instead"), "\(told.errors)")
        }

        @Test func `every item has one line however many workers are killed`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let picture = ScratchFolder.bytes(at: Self.originals + "/night-tiny.jpg") ?? []
            mkdir(folder("in"), 0o700)
            for number in 0..<200 { _ = folder.write(picture, to: "in/\(number).jpg") }
            let batch = try ChildProgram(
                Self.words(redis, folder, [folder("in")], ["--tries", "50", "--lease", "1"]), folder: folder.path)
            var workers: [ChildProgram] = []
            for number in 0..<5 { workers.append(try Self.worker(redis, folder, "w\(number)")) }
            for killed in 0..<8 {
                // During the work; the last ones may come when it is done.
                try await eventually { Self.lines(folder).count >= min(199, killed * 22) }
                let victim = workers.removeFirst()
                victim.signal(SIGKILL)
                _ = await victim.end
                workers.append(try Self.worker(redis, folder, "v\(killed)"))
            }
            let ended = await batch.end
            #expect(ended.exit == 0, "\(ended.errors)")
            let lines = Self.lines(folder)
            #expect(lines.count == 200 && Set(lines.map(\.source)).count == 200)
            #expect(lines.allSatisfy { $0.outcome != .failed } && Set(lines.compactMap(\.output)).count == 200)
            #expect(folder.names("out").filter { $0.hasSuffix(".jpg") }.count == 200)
            for worker in workers {
                worker.signal(SIGTERM)
                #expect(await worker.end.exit == 0)
            }
        }

        @Test func `an item whose report is longer than the queue takes is one failure, and its outputs are there`()
            async throws
        {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let origin = try FolderOrigin(folder: Self.originals, maxAge: 3600)
            defer { origin.stop() }
            // Sixteen times in the report.
            let url = origin.url("/night-tiny.jpg?" + String(repeating: "a", count: 5_000))
            let recipes = (30..<45).flatMap { ["-r", "thumbnail:\($0)"] }
            let worker = try Self.worker(
                redis, folder, "one", ["--set", "allowPrivateAddresses=true", "--sources", origin.url("/")])
            let ended = try await ChildProgram.run(Self.words(redis, folder, [url], recipes), folder: folder.path)
            let lines = Self.lines(folder)
            #expect(ended.exit == 1 && lines.count == 1, "\(ended.errors)")
            let line = try #require(lines.first)
            #expect(line.error?.code == .outputFailed && line.source.hasPrefix("http://127.0.0.1"))
            #expect(folder.names("out").count == 16)
            worker.signal(SIGTERM)
            #expect(await worker.end.exit == 0)
        }

        @Test func `an item that no worker survives is given up, and stops no other`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let batch = try ChildProgram(
                Self.words(redis, folder, [Self.originals], ["--tries", "2", "--lease", "0.05"]), folder: folder.path)
            let worker = BatchWorker(RedisConnection.Configuration(try RedisURL(redis.url)))
            var taken = 0
            var isDone = false
            while !isDone {
                for item in try await worker.next(count: 10, blockSeconds: 1) ?? [] {
                    if item.number == 3 {
                        taken += 1
                        continue
                    }
                    let entry = try #require(QueueEntry(payload: item.payload))
                    var line = ItemJSON(
                        source: entry.source.source, recipe: entry.recipes[0].canonical, outcome: .rendered)
                    line.written = true
                    _ = try await worker.complete(item, Array(line.line.utf8))
                }
                isDone = Self.lines(folder).count == 24
            }
            let ended = await batch.end
            #expect(ended.exit == 1 && taken == 2, "\(ended.errors)")
            let failed = Self.lines(folder).filter { $0.outcome == .failed }
            #expect(failed.map(\.error?.code) == [.abandoned] && failed[0].recipe == "thumbnail:20x20")
            #expect(
                failed[0].source.hasPrefix(Self.originals)
                    && ended.errors.contains("no worker finished the item in 2 attempts"))
            worker.close()
        }

        private final class KilledWorkers: Sendable {
            let current = Mutex<ChildProgram?>(nil)
            let isDone = Mutex(false)
        }

        @Test func `an item that kills its workers takes no other item with it`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let gate = BlockingGate()
            let picture = ScratchFolder.bytes(at: Self.originals + "/night-tiny.jpg") ?? []
            let state = KilledWorkers()
            let origin = try LoopbackOrigin { request in
                let fields: KeyValuePairs = ["Content-Type": "image/jpeg"]
                if !request.target.hasPrefix("/killer") {
                    // The killer comes while the others of its worker are in progress.
                    var reply = OriginReply.response(200, fields, body: picture)
                    reply.parts.insert(.wait(gate), at: 0)
                    return reply
                }
                state.current.withLock(\.self)?.signal(SIGKILL)
                gate.open()
                return .close
            }
            defer { origin.stop() }
            let names = ["/a.jpg", "/killer.jpg", "/b.jpg", "/c.jpg", "/d.jpg"]
            let batch = try ChildProgram(
                Self.words(redis, folder, names.map(origin.url), ["--tries", "2", "--lease", "2"]), folder: folder.path)
            let end = Task {
                let ended = await batch.end
                state.isDone.withLock { $0 = true }
                state.current.withLock(\.self)?.signal(SIGTERM)
                return ended
            }
            let more = ["--set", "allowPrivateAddresses=true", "--sources", origin.url("/")]
            var exits: [Int32] = []
            repeat {
                let worker = try Self.worker(redis, folder, "one", more)
                state.current.withLock { $0 = worker }
                if state.isDone.withLock(\.self) { worker.signal(SIGTERM) }
                exits.append(await worker.end.exit)
            } while !state.isDone.withLock(\.self)
            #expect(exits.filter { $0 == 128 + SIGKILL }.count == 2, "\(exits)")
            let ended = await end.value
            let failed = Self.lines(folder).filter { $0.written != true }
            #expect(ended.exit == 1 && Self.lines(folder).count == 5, "\(ended.errors)")
            #expect(failed.map(\.error?.code) == [.abandoned] && failed.first?.source == origin.url("/killer.jpg"))
            #expect(folder.names("out").count == 4)
        }

        @Test func `a batch whose command was killed goes on where it was`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let first = try ChildProgram(Self.words(redis, folder, [Self.originals]), folder: folder.path)
            let told = await first.waitForOutput("--attach ")
            let id = String(try #require(told.firstRange(of: "--attach ").map { told[$0.upperBound...].prefix(16) }))
            let worker = BatchWorker(RedisConnection.Configuration(try RedisURL(redis.url)))
            var left = 7
            while left > 0 {
                for item in try await worker.next(count: left, blockSeconds: 1) ?? [] {
                    left -= 1
                    let entry = try #require(QueueEntry(payload: item.payload))
                    var line = ItemJSON(
                        source: entry.source.source, recipe: entry.recipes[0].canonical, outcome: .rendered)
                    line.written = true
                    #expect(try await worker.complete(item, Array(line.line.utf8)))
                }
            }
            try await eventually { Self.lines(folder).count >= 3 }
            first.signal(SIGKILL)
            _ = await first.end
            let other = try await ChildProgram.run(
                Self.words(redis, folder, [Self.originals + "/grey.jpg"], ["--attach", id]), folder: folder.path)
            #expect(other.exit == 2 && other.errors.contains("with different sources or options"), "\(other.errors)")
            let real = try Self.worker(redis, folder, "one", ["--batch", id])
            let ended = try await ChildProgram.run(
                Self.words(redis, folder, [Self.originals], ["--attach", id]), folder: folder.path)
            #expect(ended.exit == 0 && ended.text.contains(#""items":24"#), "\(ended.errors)\(ended.text)")
            let lines = Self.lines(folder)
            #expect(lines.count == 24 && Set(lines.map(\.source)).count == 24)
            #expect(folder.names("out").count == 17)
            // The batch is gone, and a worker for this batch alone reports that, or it saw the batch's end before.
            #expect([0, 2].contains(await real.end.exit))
            worker.close()
        }

        @Test(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers"))
        func `workers write into a bucket`() async throws {
            let redis = try RedisTestServer()
            let folder = ScratchFolder()
            let store = try BucketServer("rclone", "small")
            defer { store.stop() }
            _ = folder.write(
                "s3: {endpoint: '\(store.endpoint)', accessKey: ACCESSKEY, secretKey: SECRETKEY}\nallowPrivateAddresses: true\n",
                to: "pipectl.yaml")
            let config = ["--config", folder("pipectl.yaml")]
            let worker = try Self.worker(redis, folder, "one", config)
            let ended = try await ChildProgram.run(
                [
                    "batch", Self.originals + "/grey.jpg", Self.originals + "/night-tiny.jpg", "-r", "thumbnail:20,png",
                    "-o", "s3://small/2026", "--queue", redis.url, "--cache", folder("submitter"), "--report",
                    folder("report.jsonl"),
                ] + config, folder: folder.path)
            #expect(ended.exit == 0, "\(ended.errors)")
            #expect(
                Set(Self.lines(folder).compactMap(\.output))
                    == ["s3://small/2026/grey-1.png", "s3://small/2026/night-tiny-2.png"])
            worker.signal(SIGTERM)
            #expect(await worker.end.exit == 0)
        }

        @Test(arguments: [
            (["--queue", "http://a.test"], "redis://"), (["--queue", "redis://:p/w@a.test"], "password"),
            (["--queue", "redis://127.0.0.1:1", "--name", "{stem}.png"], "{index}"),
            (["--queue", "redis://127.0.0.1:1", "--name", "{stem}{index}.png"], "not next to a digit"),
            (["--queue", "redis://127.0.0.1:1", "--gallery", "g.html"], "--gallery"),
            (["--queue", "redis://127.0.0.1:1", "--attach", "12"], "16 hexadecimal"), (["--attach", "12"], "--queue"),
            (["--queue", "redis://127.0.0.1:1", "--tries", "0"], "between 1 and 1000"),
        ]) func `what cannot be queued is a usage error`(_ words: [String], _ says: String) async throws {
            let folder = ScratchFolder()
            let ended = try await ChildProgram.run(
                ["batch", Self.originals, "-r", "png", "-o", folder("out"), "--cache", folder("cache")] + words,
                folder: folder.path)
            #expect(ended.exit == 2 && ended.errors.contains(says) && !ended.errors.contains("p/w"), "\(ended.errors)")
        }
    }
}
