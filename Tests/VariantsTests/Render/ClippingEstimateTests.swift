import Testing

@testable import Variants

/// Pictures with large areas cut at 255, and the decodes they share.
@Suite struct ClippingEstimateTests {
    /// A JPEG of 2496 × 1920 pixels of noise in reds: in `columns` of each 48 they go as far as a byte does, so that a decoder
    /// has to cut many, in the others to two thirds of that.
    private static func drawing(columns: Int) throws -> [UInt8] {
        var state: UInt32 = 1
        let tile = try RenderFixture.image(48, 48) { x, _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            let noise = UInt8(state >> 27)
            let pixel: [UInt8] = noise < 16 ? [255, 70 + 2 * noise, 60] : [200 + noise, 20, 10]
            return x < columns ? pixel : pixel.map { $0 / 3 * 2 }
        }
        let whole = try VipsCall("replicate", ["in": .image(tile), "across": 52, "down": 40]).image()
        return try RenderFixture.jpeg(whole, quality: 90)
    }

    /// Renders of it that share what they can. Those of 150 and 64 px would be decoded at a quarter on their own, the one of
    /// 300 px at a half.
    private static func jobs(columns: Int) throws -> [RenderJob] {
        let bytes = try drawing(columns: columns)
        let jobs = SharedDecodeTests.sharing(
            try [1200, 300, 150, 64].map { try RenderSamples.job(bytes, "thumbnail:\($0),png", quality: .balanced) },
            named: "drawing of \(columns)")
        #expect(jobs[0].shared?.targets.map(\.box) == [1, 2, 4, 4])
        return jobs
    }

    private static func alone(_ job: RenderJob) throws -> [UInt8] {
        var single = job
        single.shared = nil
        return try SharedDecodeTests.render(single).bytes
    }

    @Test func `of a drawing whose reds are cut, the small sizes are those that are decoded alone`() throws {
        try VipsLibrary.load()
        let jobs = try Self.jobs(columns: 48)
        let pictures = SharedPictures()
        let together = try jobs.map { try SharedDecodeTests.render($0, pictures).bytes }
        let alone = try jobs.map(Self.alone)
        // The one of 300 px is rounded otherwise.
        #expect((0..<4).map { together[$0] == alone[$0] } == [true, false, true, true])
        #expect(pictures.decodes == 1 && pictures.isEmpty)
    }

    @Test func `whichever is left out or cancelled, the others are what they are`() throws {
        try VipsLibrary.load()
        let jobs = try Self.jobs(columns: 48)
        let pictures = SharedPictures()
        let together = try jobs.map { try SharedDecodeTests.render($0, pictures).bytes }
        #expect(try jobs.map { try SharedDecodeTests.render($0).bytes } == together)
        let backwards = SharedPictures()
        #expect(try jobs.reversed().map { try SharedDecodeTests.render($0, backwards).bytes } == together.reversed())
        for cancelled in jobs.indices {
            let pictures = SharedPictures()
            for (index, job) in jobs.enumerated() where index != cancelled || index == 0 {
                let control = RenderControl()
                if index == cancelled { control.stop(.cancelled) }
                let outcome = Result { () throws(RenderError) in
                    try job.original.bytes().withUnsafeBytes { bytes in
                        Result { () throws(RenderError) in try Render(job, bytes, control, pictures).variant().bytes }
                    }.get()
                }
                #expect((try? outcome.get()) == (index == cancelled ? nil : together[index]))
            }
        }
    }

    @Test(arguments: [0, 8, 48])
    func `a darker one, or one of which a sixth is cut, shares all sizes`(columns: Int) throws {
        try VipsLibrary.load()
        let job = try Self.jobs(columns: columns)[0]
        let shared = try #require(job.shared)
        let pictures = SharedPictures()
        let isShared = try job.original.bytes().withUnsafeBytes { bytes in
            let image = try Decoding.open(bytes, .jpeg, shrink: shared.shrink)
            return try shared.targets.map { target in
                try pictures.reduced(image, nil, to: target, shared, isDrawn: false, RenderControl()) != nil
            }
        }
        #expect(isShared == [true, true, columns < 48, columns < 48])
    }

    @Test(arguments: 1...4)
    func `squares are counted that have 255 and less in one band`(bands: Int) {
        var state: UInt32 = 7
        for (width, extra) in [(1, 0), (3, 5), (4, 0), (5, 1), (64, 0), (203, 16), (1031, 2)] {
            let lineBytes = width * bands + extra
            // In runs, so that some squares are 255 throughout, some not at all.
            let bytes = (0..<(4 * lineBytes)).map { index -> UInt8 in
                if index % 9 == 0 { state = state &* 1_664_525 &+ 1_013_904_223 }
                return state >> 24 < 200 ? 255 : UInt8(state >> 24)
            }
            var expected = 0
            for square in 0..<(width / 4) {
                let isCut = (0..<bands).contains { band in
                    let samples = (0..<16).map { bytes[$0 / 4 * lineBytes + (square * 4 + $0 % 4) * bands + band] }
                    return samples.contains(255) && samples.contains { $0 < 255 }
                }
                if isCut { expected += 1 }
            }
            var squares = ClippingEstimate()
            bytes.withUnsafeBytes { bytes in
                guard let start = bytes.baseAddress else { return }
                func tile(rows: Int) -> Image.Tile {
                    Image.Tile(
                        left: 0, top: 0, size: PixelSize(width: width, height: rows), start: start,
                        pixelBytes: bands, lineBytes: lineBytes)
                }
                squares.examine(at: tile(rows: 4), bands: bands)
                #expect((squares.cut, squares.seen) == (expected, width / 4))
                squares.examine(at: tile(rows: 3), bands: bands)
                #expect((squares.cut, squares.seen) == (expected, width / 4))
            }
            #expect(squares.isMuch == (expected * 10 > width / 4 * 3))
        }
    }
}
