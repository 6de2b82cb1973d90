import Testing

@testable import Variants

@Suite struct WorkerMessagesTests {
    static let request = WorkerRequest(
        id: 7, kind: .pixels, count: 123_456,
        header: header,
        recipe: "thumbnail:300x300,mask:star",
        output: output,
        quality: .best, light: .linear, limits: limits, masks: [WorkerRequest.Mask(name: "star", count: 99)],
        shared: SharedDecode(
            name: "digest", shrink: 2,
            targets: [
                SharedDecode.Target(size: PixelSize(width: 300, height: 200), box: 1, light: .auto),
                SharedDecode.Target(size: PixelSize(width: 64, height: 43), box: 4, light: .gamma),
            ], members: 3))

    static let header: ImageHeader = {
        var header = ImageHeader(
            format: .avif, encodedWidth: 4000, encodedHeight: 3000, pages: 2, hasAlpha: true, orientation: 6, scans: 3,
            profileBytes: 560, hasFewColors: true, heldBytes: 123_456_789)
        header.transcodingObstacle = .depth
        return header
    }()
    static let output: ResolvedOutput = {
        var output = ResolvedOutput(
            format: .jpeg, quality: 71, mayBeLossless: true, maxBytes: 20_000, isProgressive: true, chroma: .half,
            effort: 8, keep: [.exif, .xmp])
        output.score = 65
        output.transcodes = true
        output.transcodesIfSmaller = true
        output.alternatives = [.avif, .webp]
        output.isSecondPass = true
        return output
    }()

    /// None at its default, so that none can be left out unnoticed.
    static let limits: RenderLimits = {
        var limits = RenderLimits()
        limits.pixels = 1
        limits.bytes = 2
        limits.frames = 3
        limits.scans = 4
        limits.outputEdge = 5
        limits.profileBytes = 6
        limits.acceptsDamaged = true
        limits.timeout = .seconds(7.5)
        limits.encodeTimeout = .seconds(2.5)
        limits.formats = [.png, .tiff]
        return limits
    }()

    static let replies: [WorkerReply] = [
        .ready(
            WorkerReply.Ready(
                revision: "1 libvips", protection: WorkerProtection(bits: 0b101011, landlock: 4), failure: "none",
                libraries: RenderLibraries(
                    libvips: "1", libheif: "1.2", written: [.jpeg], read: [.png], files: ["/a", "/b"]))),
        .finished(
            WorkerReply.Finished(
                id: 8, count: 15_000, width: 300, height: 200, hasAlpha: true, reencodingReason: "a reason",
                decode: 1.5, operations: 2, encode: 0, cpu: 3)),
        .encoding(id: 7),
        .failed(id: 9, .undecodable, message: "the pixels cannot be decoded"),
    ]

    @Test func `requests, replies and stops arrive as they were sent`() throws {
        #expect(try WorkerRequest(Self.request.bytes) == Self.request)
        var tile = Self.request
        tile.shared = SharedDecode(
            name: "digest", shrink: 4, targets: [], area: PixelRectangle(x: 1, y: 2, width: 3, height: 4), members: 5)
        #expect(try WorkerRequest(tile.bytes) == tile)
        tile.shared?.area = nil
        #expect((try? WorkerRequest(tile.bytes)) == nil)
        // A new limit must be in the message, and in this test.
        #expect(Mirror(reflecting: Self.limits).children.count == 11)
        #expect(Mirror(reflecting: Self.header).children.count == 14)
        #expect(Mirror(reflecting: Self.output).children.count == 15)
        for reply in Self.replies { #expect(try WorkerReply(reply.bytes) == reply) }
        #expect(try WorkerStop(WorkerStop(id: 5).bytes).id == 5)
    }

    @Test func `a message cut anywhere, or with a byte too many, is refused`() {
        func check(_ bytes: [UInt8], _ isRead: ([UInt8]) -> Bool) {
            #expect(isRead(bytes))
            for length in 0..<bytes.count { #expect(!isRead(Array(bytes[..<length]))) }
            #expect(!isRead(bytes + [0]))
        }
        check(Self.request.bytes) { (try? WorkerRequest($0)) != nil }
        check(WorkerStop(id: 5).bytes) { (try? WorkerStop($0)) != nil }
        for reply in Self.replies { check(reply.bytes) { (try? WorkerReply($0)) != nil } }
    }

    @Test func `texts are cut between characters when they are written, and refused if they are no UTF-8`() throws {
        func read(_ bytes: [UInt8]) throws -> String? {
            if case .failed(_, _, let message) = try WorkerReply(bytes) { message } else { nil }
        }
        let long = String(repeating: "ä", count: WorkerProtocol.textLimit)
        let cut = try read(WorkerReply.failed(id: 1, .crashed, message: "x" + long).bytes)
        #expect(cut == "x" + long.prefix(WorkerProtocol.textLimit / 2 - 1))
        var bytes = WorkerReply.failed(id: 1, .crashed, message: "abc").bytes
        bytes[bytes.count - 1] = 0xFF
        #expect(throws: MessageError("a message that is not text")) { try read(bytes) }
    }

    @Test func `bytes that are anything are read or refused, never trapped on`() {
        var random = SplitMix64(state: 42)
        var accepted = 0
        for round in 0..<20_000 {
            var bytes: [UInt8]
            if round % 2 == 0 {
                bytes = (0..<Int(random.next() % 200)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            } else {
                bytes = round % 4 == 1 ? Self.request.bytes : Self.replies[Int(random.next() % 3)].bytes
                for _ in 0...(random.next() % 4) {
                    bytes[Int(random.next() % UInt64(bytes.count))] = UInt8(truncatingIfNeeded: random.next())
                }
            }
            if (try? WorkerRequest(bytes)) != nil { accepted += 1 }
            if let reply = try? WorkerReply(bytes) {
                accepted += 1
                if case .finished(let finished) = reply {
                    // The pipeline's sums cannot overflow.
                    #expect(finished.width * finished.height * 4 >= 4 && finished.cpu.isFinite)
                }
            }
            _ = try? WorkerStop(bytes)
        }
        #expect(accepted > 0)
    }

    @Test(arguments: [-1, 1 << 41, Int.max, Int.min]) func `lengths and sizes beyond what there can be are refused`(
        value: Int
    ) {
        func reply(_ count: Int, _ width: Int, _ decode: Double) -> [UInt8] {
            WorkerReply.finished(
                WorkerReply.Finished(
                    id: 1, count: count, width: width, height: 5, hasAlpha: false, decode: decode, operations: 0,
                    encode: 0, cpu: 0)
            ).bytes
        }
        #expect((try? WorkerReply(reply(5, 5, 0))) != nil)
        #expect((try? WorkerReply(reply(value, 5, 0))) == nil)
        #expect((try? WorkerReply(reply(5, value, 0))) == nil)
        #expect((try? WorkerReply(reply(5, 0, 0))) == nil)
        for time in [-1, Double.nan, .infinity] { #expect((try? WorkerReply(reply(5, 5, time))) == nil) }
        var request = Self.request
        request.count = value
        #expect((try? WorkerRequest(request.bytes)) == nil)
    }

    @Test func `the message names the locks of a worker, and those that are missing`() {
        let all = WorkerProtection(bits: 0b111111, landlock: 7)
        #expect(all.missing.isEmpty && all.bits == 0b111111)
        #expect(all.description.contains("Landlock (version 7)") && !all.description.contains("not in force"))
        let none = WorkerProtection(bits: 0, landlock: 0)
        #expect(none.description.hasPrefix("nothing; not in force: Landlock, seccomp"))
    }
}
