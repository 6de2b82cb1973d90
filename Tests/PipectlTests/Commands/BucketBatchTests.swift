import Glibc
import Pipeline
import PipelineFetching
import PipelineSupport
import Synchronization
import TestSupport
import Testing

@testable import pipectl

/// A store that is not ours, its buckets `photos` and `out`, and what stands between it and the program if a test asks.
private final class StoreBench: Sendable {
    let folder = ScratchFolder()
    private let store: BucketServer
    var endpoint: String { store.endpoint }
    private let curl: CurlTransport
    let direct: S3Transport

    init(_ server: String) throws {
        store = try BucketServer(server, "photos", "out", isShared: true)
        var fetching = FetchConfiguration()
        fetching.allowPrivateAddresses = .all
        curl = CurlTransport(fetching)
        var configuration = S3Configuration()
        configuration.store.endpoint = store.endpoint
        configuration.store.credentials = .key(id: "ACCESSKEY", secret: "SECRETKEY")
        direct = S3Transport(
            RetryingTransport(curl, configuration: fetching), configuration, environment: { _ in nil })
    }

    deinit { curl.shutdown() }

    func put(_ bytes: [UInt8], _ object: String) async throws {
        let type = [HeaderField("Content-Type", "image/bmp")]
        try await direct.put(bytes, to: #require(try SourceURL(s3: object)), type)
    }

    /// Puts pictures, eight at a time.
    func put(pictures count: Int) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<count {
                if number >= 8 { try await group.next() }
                group.addTask { try await self.put(picture(number), "s3://photos/\(number % 7)/\(number).bmp") }
            }
            try await group.waitForAll()
        }
    }

    func get(_ object: String) async throws -> FetchedResponse {
        try await direct.fetch(FetchRequest(url: #require(try SourceURL(s3: object))), onProgress: nil)
    }

    func keys(_ bucket: String) async throws -> [String] {
        let folder = try #require(try SourceURL(s3: "s3://" + bucket, isFolder: true))
        var (keys, next) = ([String](), String?.none)
        repeat {
            let page = try await direct.list(folder, after: next)
            keys += page.objects.map(\.key)
            next = page.next
        } while next != nil
        return keys
    }

    /// A store in front of this one: `answer` sees a request and what asks the store.
    func front(
        _ answer: @escaping @Sendable (OriginRequest, () -> FetchedResponse?) -> OriginReply
    ) throws -> LoopbackOrigin {
        try LoopbackOrigin { [curl, endpoint = store.endpoint] request in
            answer(request) {
                guard let url = try? SourceURL(endpoint + request.target) else { return nil }
                let kept = request.lines.filter { !["host", "content-length", "expect"].contains($0.name) }
                var asked = FetchRequest(url: url, fields: kept.map { HeaderField($0.name, $0.value) })
                (asked.method, asked.body) = (request.method, request.body)
                return waitOutside { [asked] in try? await curl.fetch(asked) }
            }
        }
    }

    func start(
        _ arguments: [String], endpoint other: String? = nil, environment: [String]? = nil, settings: [String] = []
    ) throws -> ChildProgram {
        let given = environment ?? ["AWS_ACCESS_KEY_ID=ACCESSKEY", "AWS_SECRET_ACCESS_KEY=SECRETKEY"]
        let store = "s3={\"endpoint\":\"\(other ?? endpoint)\",\"maxAge\":3600}"
        return try ChildProgram(
            ["batch"] + arguments + ["--cache", folder("cache"), "--json"]
                + ([store, "limits.seconds=120"] + settings).flatMap { ["--set", $0] },
            folder: folder.path, environment: given)
    }

    func run(_ arguments: String...) async throws -> (ChildProgram.Ended, SettingValue) {
        let ended = try await start(arguments).end
        return (ended, SettingValue.parsed(ended.text))
    }
}

/// A BMP of 4 × 4 pixels, different for each number.
private func picture(_ number: Int) -> [UInt8] {
    func little(_ value: Int, _ count: Int) -> [UInt8] { (0..<count).map { UInt8(value >> ($0 * 8) & 255) } }
    let pixels = (0..<16).flatMap { [UInt8(number & 255), UInt8(number >> 8), UInt8($0 * 16)] }
    return Array("BM".utf8) + little(102, 4) + little(0, 4) + little(54, 4) + little(40, 4) + little(4, 4)
        + little(4, 4)
        + little(1, 2) + little(24, 2) + little(0, 4) + little(48, 4) + little(2835, 4) + little(2835, 4) + little(0, 8)
        + pixels
}

private func reply(_ response: FetchedResponse?) -> OriginReply {
    guard let response else { return .close }
    var head = "HTTP/1.1 \(response.status) Status\r\nContent-Length: \(response.body.count)\r\n"
    for field in response.fields where field.name.lowercased() != "content-length" {
        head += "\(field.name): \(field.value)\r\n"
    }
    return OriginReply(parts: [.bytes(Array((head + "\r\n").utf8) + response.body)], keepsAlive: true)
}

extension CommandTests {
    @Suite(.enabled(if: S3Servers.areInstalled, "scripts/install-s3-servers")) struct BucketBatch {
        @Test(arguments: ["moto", "rclone"])
        func `a bucket is listed, rendered and written, and what stands is not written again`(
            _ server: String
        ) async throws {
            let bench = try StoreBench(server)
            for (number, key) in ["a%20b.bmp", "2026/%C3%BC%2B.bmp", "2026/07/c.bmp"].enumerated() {
                try await bench.put(picture(number), "s3://photos/in/" + key)
            }
            try await bench.put(Array("text".utf8), "s3://photos/in/readme.txt")
            if server == "moto" { try await bench.put([], "s3://photos/in/empty/") }
            try await bench.put(picture(9), "s3://photos/instead.bmp")
            let written = ["2026/07/c.png", "2026/ü+.png", "a b.png"]
            let command = ["s3://photos/in", "-r", "png", "-o", "s3://out/x"]
            let first = try await bench.start(command + ["--cache-control", "max-age=60"]).end
            #expect(first.exit == 0, "\(first.errors)")
            let summary = SettingValue.parsed(first.text)
            #expect(summary["written"] == .int(3) && summary.at("outcomes", "skipped") == .int(1), "\(first.text)")
            #expect(try await bench.keys("out") == written.map { "x/" + $0 })
            let object = try await bench.get("s3://out/x/2026/07/c.png")
            #expect(object.fields.first("content-type") == "image/png")
            #expect(object.fields.first("cache-control") == "max-age=60")
            #expect(object.body.starts(with: [0x89, 0x50, 0x4E, 0x47]))
            // Again, with another Cache-Control, and without one.
            for (control, new) in [("max-age=60", 0), ("max-age=70", 3), (nil, 0)] as [(String?, Int)] {
                let again = try await bench.start(command + (control.map { ["--cache-control", $0] } ?? [])).end
                let counts = SettingValue.parsed(again.text)
                #expect(counts["written"] == .int(new) && counts["unchanged"] == .int(3 - new), "\(again.errors)")
            }
        }

        @Test(arguments: ["moto", "rclone"])
        func `no source is replaced, and outputs beside sources are no sources`(_ server: String) async throws {
            let bench = try StoreBench(server)
            let jpeg = try #require(ScratchFolder.bytes(at: Samples.original("night-tiny.jpg")))
            for number in 0..<3 { try await bench.put(picture(number), "s3://photos/\(number).bmp") }
            try await bench.put(jpeg, "s3://photos/4.jpg")
            let (first, summary) = try await bench.run("s3://photos/", "-r", "thumbnail:3,jpeg", "-o", "s3://photos")
            #expect(first.exit == 1 && summary.at("failures", "outputFailed") == .int(1), "\(first.errors)")
            #expect(first.errors.contains("s3://photos/4.jpg: it is one of the sources"), "\(first.errors)")
            #expect(try await bench.get("s3://photos/4.jpg").body == jpeg)
            #expect(try await bench.keys("photos") == ["0.bmp", "0.jpg", "1.bmp", "1.jpg", "2.bmp", "2.jpg", "4.jpg"])
            let (_, again) = try await bench.run("s3://photos/", "-r", "thumbnail:3,jpeg", "-o", "s3://photos")
            #expect(again["ownOutputs"] == .int(3) && again["unchanged"] == .int(3), "\(again)")
            // An output folder inside is left out as a whole, a file named by its key is protected too.
            let (_, inside) = try await bench.run("s3://photos/", "-r", "png", "-o", "s3://photos/png")
            #expect(inside["written"] == .int(7), "\(inside)")
            let (_, second) = try await bench.run("s3://photos/", "-r", "png", "-o", "s3://photos/png")
            #expect(second["items"] == .int(7) && second["unchanged"] == .int(7), "\(second)")
            let (one, _) = try await bench.run("s3://photos/4.jpg", "-r", "thumbnail:3,jpeg", "-o", "s3://photos")
            #expect(one.exit == 1 && one.errors.contains("it is one of the sources"), "\(one.errors)")
        }

        @Test func `an argument without a dot is a folder if something is below it, else an object`() async throws {
            let bench = try StoreBench("moto")
            for (number, key) in ["a/1.bmp", "b", "ab.bmp"].enumerated() {
                try await bench.put(picture(number), "s3://photos/" + key)
            }
            let (ended, summary) = try await bench.run("s3://photos/a", "s3://photos/b", "-r", "png", "-o", "out")
            #expect(summary["written"] == .int(2), "\(ended.errors)")
            #expect(bench.folder.names("out") == ["1.png", "b.png"])
            let (empty, _) = try await bench.run("s3://photos/none/", "-r", "png", "-o", "out")
            #expect(
                empty.exit == 0 && empty.errors.contains("s3://photos/none/ contains no objects"), "\(empty.errors)")
            let (missing, _) = try await bench.run("s3://photos/a/", "-r", "png", "-o", "s3://nowhere/x")
            #expect(
                missing.exit == 8 && missing.errors.contains("the bucket `nowhere` does not exist"), "\(missing.errors)"
            )
            let (usage, _) = try await bench.run(
                "s3://photos/", "-r", "png", "-o", "out", "--cache-control", "no-cache")
            #expect(usage.exit == 2, "\(usage.errors)")
        }

        @Test func `a run that was killed does only what is missing when it is started again`() async throws {
            let bench = try StoreBench("moto")
            let count = 60
            try await bench.put(pictures: count)
            let puts = Atomic(0)
            // Objects that the store has by now. It may still be storing the last one when a further one is sent.
            let stored = Atomic(0)
            let fetches = Atomic(0)
            let limit = Atomic(20)
            let front = try bench.front { request, ask in
                if request.method == "PUT" {
                    let number = puts.add(1, ordering: .relaxed).newValue
                    if number > limit.load(ordering: .relaxed) { return .hang }
                    defer { stored.add(1, ordering: .relaxed) }
                    return reply(ask())
                } else if request.path.hasSuffix(".bmp") {
                    fetches.add(1, ordering: .relaxed)
                }
                return reply(ask())
            }
            defer { front.stop() }
            let command = ["s3://photos/", "-r", "png", "-o", "s3://out"]
            let child = try bench.start(command, endpoint: front.url(""))
            try await waitWhile { puts.load(ordering: .relaxed) <= 20 || stored.load(ordering: .relaxed) < 20 }
            child.signal(SIGKILL)
            #expect(await child.end.exit == 128 + SIGKILL)
            let standing = try await bench.keys("out").count
            #expect(standing == 20)
            puts.store(0, ordering: .relaxed)
            limit.store(.max, ordering: .relaxed)
            let fetched = fetches.exchange(0, ordering: .relaxed)
            let second = try await bench.start(command, endpoint: front.url("")).end
            #expect(second.exit == 0, "\(second.errors)")
            #expect(puts.load(ordering: .relaxed) == count - standing)
            // Of what was fetched all that the cache folder has stored, as for files.
            #expect(fetches.load(ordering: .relaxed) <= count - standing && fetched >= standing)
            let summary = SettingValue.parsed(second.text)
            #expect(summary["unchanged"] == .int(standing) && summary["written"] == .int(count - standing))
            #expect(try await bench.keys("out").count == count)
            puts.store(0, ordering: .relaxed)
            fetches.store(0, ordering: .relaxed)
            let third = try await bench.start(command, endpoint: front.url("")).end
            #expect(SettingValue.parsed(third.text).at("outcomes", "rendered") == .int(0))
            #expect(puts.load(ordering: .relaxed) == 0 && fetches.load(ordering: .relaxed) == 0)
        }

        /// Fails each fifth call, is slow, cuts bodies and takes new credentials several times. `OBJECTS=1000` takes 90
        /// seconds.
        @Test func `nothing is wrong or lost at a store that fails, is slow, cuts bodies and changes credentials`()
            async throws
        {
            let count = getenv("OBJECTS").flatMap { Int(String(cString: $0)) } ?? 200
            let bench = try StoreBench("moto")
            try await bench.put(pictures: count)
            let credentials = bench.folder("credentials")
            @Sendable func rotate(to number: Int) {
                let text = "[default]\naws_access_key_id=KEY\(number)\naws_secret_access_key=SECRET\n"
                bench.folder.write(text, to: "credentials.new")
                rename(credentials + ".new", credentials)
            }
            rotate(to: 0)
            let state = Mutex((calls: 0, key: 0, refused: 0, failed: 0, cut: 0))
            @Sendable func error(_ status: Int, _ code: String) -> OriginReply {
                .response(status, body: Array("<Error><Code>\(code)</Code></Error>".utf8))
            }
            let front = try bench.front { request, ask in
                let (call, key) = state.withLock { state in
                    state.calls += 1
                    if state.calls % 140 == 0 {
                        state.key += 1
                        rotate(to: state.key)
                    }
                    return (state.calls, state.key)
                }
                guard request["authorization"]?.contains("Credential=KEY\(key)/") == true else {
                    state.withLock { $0.refused += 1 }
                    return key % 2 == 0 ? error(400, "ExpiredToken") : error(403, "InvalidAccessKeyId")
                }
                if call % 5 == 0 {
                    state.withLock { $0.failed += 1 }
                    return error(503, "SlowDown")
                }
                let answer = reply(ask())
                guard call % 7 == 0, case .bytes(let bytes)? = answer.parts.first else { return answer }
                // Half of the answer after a moment, then the end of the connection.
                state.withLock { $0.cut += 1 }
                poll(nil, 0, 20)
                return OriginReply(parts: [.bytes(Array(bytes.prefix(bytes.count - 20)))], keepsAlive: false)
            }
            defer { front.stop() }
            let ended = try await bench.start(
                ["s3://photos/", "-r", "png", "-o", "s3://out"], endpoint: front.url(""),
                environment: ["AWS_SHARED_CREDENTIALS_FILE=\(credentials)"]
            ).end
            #expect(ended.exit == 0, "\(ended.errors)")
            #expect(SettingValue.parsed(ended.text)["written"] == .int(count), "\(ended.text)")
            let seen = state.withLock { $0 }
            #expect(seen.key > 3 && seen.refused > 3 && seen.failed > count / 2 && seen.cut > count / 4, "\(seen)")
            // The result for the same pictures from a folder.
            for number in 0..<count { bench.folder.write(picture(number), to: "in/\(number % 7)/\(number).bmp") }
            let (files, _) = try await bench.run(bench.folder("in"), "-r", "png", "-o", bench.folder("files"))
            #expect(files.exit == 0, "\(files.errors)")
            #expect(try await bench.keys("out").count == count)
            for number in 0..<count {
                let name = "\(number % 7)/\(number).png"
                let stands = try await bench.get("s3://out/" + name)
                #expect(stands.body == bench.folder.bytes("files/" + name), "\(name)")
                #expect(stands.fields.first("content-type") == "image/png")
            }
        }
    }
}
