import Glibc
import TestSupport
import Testing

@testable import Variants

/// Tests JPEGs that are stored as JPEG XL without loss. djxl restores the JPEG, and cjpeg writes unusual ones.
@Suite(
    .enabled(
        if: ["djxl", "cjpeg", "djpeg"].allSatisfy { access("/usr/bin/" + $0, X_OK) == 0 },
        "needs Debian's libjxl-tools and libjpeg-turbo-progs (scripts/install-dependencies --tests)"))
struct TranscodeTests {
    private let folder = ScratchFolder()

    private static func variant(_ original: [UInt8], _ recipe: String) async throws -> RenderedVariant {
        try await RenderFixture.renderer.render(RenderSamples.job(original, recipe))
    }

    private func run(_ words: String...) throws {
        let program = try HelperProgram(words)
        let status = program.waitForEnd()
        try #require(status == 0, "\(words): \(program.text)")
    }

    /// Returns the JPEG that djxl restores.
    private func restored(_ variant: RenderedVariant) throws -> [UInt8] {
        #expect(variant.format == .jxl && variant.reencodingReason == nil)
        folder.write(variant.bytes, to: "a.jxl")
        try run("djxl", folder("a.jxl"), folder("restored.jpg"))
        return try #require(folder.bytes("restored.jpg"))
    }

    /// Returns a JPEG of a photograph that cjpeg wrote.
    private func photograph(_ options: String...) throws -> [UInt8] {
        try run("djpeg", "-outfile", folder("a.ppm"), RenderSamples.path("meadow-small.jpg"))
        let words = ["cjpeg", "-quality", "88"] + options + ["-outfile", folder("a.jpg"), folder("a.ppm")]
        let program = try HelperProgram(words)
        try #require(program.waitForEnd() == 0, "\(program.text)")
        return try #require(folder.bytes("a.jpg"))
    }

    /// Expects the same upright pixels, apart from the rounding of two decoders.
    private func expectSamePixels(_ variant: RenderedVariant, _ jpeg: [UInt8], _ name: String) async throws {
        var job = try RenderSamples.job(variant.bytes, "")
        job.limits.formats = Set(ImageFormat.decodable)
        let found = try await RenderFixture.renderer.pixels(job)
        let expected = try await RenderFixture.renderer.pixels(RenderSamples.job(jpeg, ""))
        #expect(found.width == variant.width && found.height == variant.height)
        #expect(found.width == expected.width && found.height == expected.height, "\(name)")
        let differences = zip(found.pixels, expected.pixels).map { abs(Int($0) - Int($1)) }
        // A JPEG decoder rounds and clips luma and chroma before it converts them to RGB. A JPEG XL decoder does not.
        #expect(differences.max() ?? 255 <= 12, "\(name)")
        #expect(Double(differences.count { $0 > 3 }) < 0.001 * Double(differences.count), "\(name)")
        #expect(Double(differences.reduce(0, +)) / Double(differences.count) < 0.6, "\(name)")
    }

    @Test(arguments: [
        "dunes-2mp", "grey", "progressive", "wide-gamut-adobe", "wide-gamut-p3", "exif-orientation-6", "night-tiny",
    ])
    func `djxl restores the original from fewer bytes`(name: String) async throws {
        let original = try #require(ScratchFolder.bytes(at: RenderSamples.path(name + ".jpg")))
        for recipe in ["jxl:transcode", "jxl:transcode:keep=all", "frames:all,profile:keep,jxl:transcode"] {
            let variant = try await Self.variant(original, recipe)
            #expect(try restored(variant) == original, "\(name) \(recipe)")
            #expect(variant.bytes.count < original.count)
        }
    }

    @Test func `all ways of coding that libjxl supports are restored, with the same pixels`() async throws {
        for options in [
            ["-sample", "1x1"], ["-sample", "2x1"], ["-sample", "2x2"], ["-sample", "1x2"], ["-progressive"],
            ["-restart", "2"], ["-restart", "3B", "-progressive"], ["-grayscale"], ["-rgb"], ["-optimize"],
        ] {
            let original = try photograph(options[0], options.count > 1 ? options[1] : "-baseline")
            let variant = try await Self.variant(original, "jxl:transcode")
            #expect(try restored(variant) == original, "\(options)")
            try await expectSamePixels(variant, original, "\(options)")
        }
    }

    @Test(arguments: 1...8) func `the orientation stays`(orientation: Int) async throws {
        for isBig in [true, false] {
            let exif = HandmadeImages.exif(orientation, bigEndian: isBig)
            let original = KeptBlobs(exif: exif).inserted(intoJPEG: try photograph("-baseline"))
            for keep in ["", ":keep=none", ":keep=exif", ":keep=all"] {
                let variant = try await Self.variant(original, "jxl:transcode" + keep)
                #expect(try ImageHeader.probe(restored(variant)).orientation == orientation)
                try await expectSamePixels(variant, original, "orientation \(orientation), \(keep)")
            }
        }
    }

    @Test(.enabled(if: ExifTool.isInstalled, "needs Debian's libimage-exiftool-perl"))
    func `the file and the restored JPEG have the metadata of other variants`() async throws {
        let tool = ExifTool()
        let tagged = try tool.tagged(
            photograph("-baseline"), "a.jpeg",
            [
                "EXIF:Artist=Ann", "EXIF:Software=Secret", "EXIF:GPSLatitude=48.25", "EXIF:GPSLatitudeRef=N",
                "EXIF:SerialNumber=Secret", "EXIF:Orientation#=8", "IPTC:By-line=Ida", "IPTC:City=Secret",
                "IPTC:CopyrightNotice=© Iim", "XMP-dc:Creator=Cid", "XMP-xmp:CreatorTool=Secret",
                "XMP-exif:GPSLatitude=48.25", "Comment=Secret",
                "ThumbnailImage<=" + RenderSamples.path("night-tiny.jpg"),
            ])
        let credits: Set = ["[IFD0] Artist : Ann", "[XMP-dc] Creator : Cid", "[XMP-dc] Rights : © Iim"]
        let orientation = "[IFD0] Orientation : Rotate 270 CW"
        func read(_ keep: String) async throws -> [Set<String>] {
            let variant = try await Self.variant(tagged, "jxl:transcode:keep=" + keep)
            let jpeg = try restored(variant)
            if keep == "all" { #expect(jpeg == tagged) }
            return try tool.read([("a.jxl", variant.bytes), ("restored.jpeg", jpeg)])
        }
        for found in try await read("copyright") {
            #expect(found.isSuperset(of: credits) && found.contains(orientation), "\(found)")
            #expect(found.count { $0.hasPrefix("[") } == 4, "\(found)")
        }
        for found in try await read("none") { #expect(found.filter { $0.hasPrefix("[") } == [orientation]) }
        for found in try await read("exif+xmp") {
            #expect(found.isSuperset(of: credits) && found.contains("[IFD0] Software : Secret"), "\(found)")
            for word in ["GPS", "Thumbnail", "City"] { #expect(!found.contains { $0.contains(word) }, "\(found)") }
        }
        for found in try await read("all") { #expect(found.contains { $0.hasPrefix("[GPS] GPSLatitude :") }) }
    }

    @Test func `data outside the picture is removed, wherever it is`() async throws {
        let plain = try photograph("-progressive")
        let comment = HandmadeImages.segment(0xFE, Array("Secret".utf8))
        let jfxx = HandmadeImages.segment(0xE0, Array("JFXX\0Secret".utf8))
        let map = HandmadeImages.segment(0xE2, Array("MPF\0Secret".utf8))
        var scans: [Int] = []
        for index in plain.indices.dropLast() where plain[index] == 0xFF && plain[index + 1] == 0xDA {
            scans.append(index)
        }
        try #require(scans.count > 2)
        var original = plain[..<20] + comment + Array("Secret".utf8) + jfxx + map + plain[20..<scans[2]]
        original += comment + plain[scans[2]...] + Array("Secret".utf8) + plain
        let found = try restored(await Self.variant(Array(original), "jxl:transcode"))
        #expect(found == plain)
        // The thumbnail of JFIF.
        let withThumbnail = plain[..<4] + [0, 22] + plain[6..<18] + [1, 2] + Array("Secret".utf8) + plain[20...]
        #expect(try restored(await Self.variant(Array(withThumbnail), "jxl:transcode")) == plain)
        #expect(try restored(await Self.variant(Array(original), "jxl:transcode:keep=all")) == Array(original))
    }

    @Test func `pixels are encoded, and the reason given, if the data cannot be kept`() async throws {
        let usual = try photograph("-baseline")
        let adobe = HandmadeImages.segment(0xEE, Array("Adobe".utf8) + [0, 100, 0, 0, 0, 0, 0])
        let cases: [([UInt8], String)] = [
            (try photograph("-arithmetic"), "arithmetic coding"),
            (try photograph("-arithmetic", "-progressive"), "arithmetic coding"),
            (try #require(ScratchFolder.bytes(at: RenderSamples.path("cmyk.jpg"))), "CMYK"),
            (try #require(ScratchFolder.bytes(at: RenderSamples.path("moon-grey-alpha.png"))), "format is PNG"),
            // libjxl 0.7 writes unreadable files for RGB with subsampled components.
            (usual[..<2] + adobe + usual[20...], "unusual structure"),
            (try photograph("-sample", "4x1"), "unusual structure"),
            (usual.dropLast(2), "truncated"),
            (
                usual[..<20] + HandmadeImages.segment(0xE2, Array("ICC_PROFILE\0\u{1}\u{1}x".utf8)) + usual[20...],
                "unusual structure"
            ),
        ]
        for (original, reason) in cases {
            let job = try RenderSamples.job(original, "jxl:transcode")
            let variant = try await RenderFixture.renderer.render(job)
            let found = job.recipe.refusedTranscoding(of: job.header) ?? variant.reencodingReason
            #expect(found?.contains(reason) == true, "\(reason): \(found ?? "none")")
            #expect(variant.bytes == (try await Self.variant(original, "jxl").bytes), "\(reason)")
        }
        let cut = try RenderSamples.job(Array(usual[..<(usual.count / 2)]), "jxl:transcode")
        await #expect(throws: RenderError.self) { try await RenderFixture.renderer.render(cut) }
    }

    @Test func `a stopped render is not replaced by another encoding`() throws {
        try VipsLibrary.load()
        let job = try RenderSamples.job(photograph("-baseline"), "jxl:transcode")
        let control = RenderControl()
        control.stop(.cancelled)
        let original = try job.original.bytes()
        #expect { try original.withUnsafeBytes { try Render(job, $0, control, SharedPictures()).variant() } } throws: {
            ($0 as? RenderError)?.code == .cancelled
        }
    }
}

// Within the suite of the workers, which counts and kills the workers of the whole process.
extension WorkerPoolTests {
    @Test func `damaged JPEGs are transcoded, encoded or refused, and no worker is lost`() async throws {
        let pool = HostileFileTests.pool()
        let seeds = try #require(SmallPictures.byFormat().first { $0.format == "jpeg" }).pictures
        let mutator = Mutator(seeds: seeds, words: [[0xFF, 0xDA], [0xFF, 0xC4], [0xFF, 0xC2]], limit: 65_536)
        var tally: [String: Int] = [:]
        for made in 0..<2_000 {
            var random = FuzzRandom(seed: 53 &* 0x1_0000_0001 &+ UInt64(made))
            let recipe = made % 2 == 0 ? "jxl:transcode" : "jxl:transcode:keep=all"
            switch try await HostileFileTests.outcome(mutator.input(&random), recipe, pool) {
            case .success(let variant):
                tally[variant.reencodingReason == nil ? "transcoded" : "encoded", default: 0] += 1
            case .failure(let error):
                #expect(HostileFileTests.ordinary.contains(error.code), "\(made): \(error.code), \(error)")
                tally["refused", default: 0] += 1
            }
        }
        #expect(["transcoded", "encoded", "refused"].allSatisfy { tally[$0, default: 0] > 50 }, "\(tally)")
        #expect(pool.statistics.crashed == 0 && pool.statistics.killed == 0, "\(pool.statistics)")
        await pool.shutdown()
    }
}
