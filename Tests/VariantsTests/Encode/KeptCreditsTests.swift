import Glibc
import TestSupport
import Testing

@testable import Variants

/// Every output keeps the credits of its original, and nothing else. ExifTool writes and reads the metadata.
@Suite(
    .enabled(if: ExifTool.isInstalled, "needs Debian's libimage-exiftool-perl (scripts/install-dependencies --tests)"))
struct KeptCreditsTests {
    private static let source = "http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia"
    private static let exif = [
        "EXIF:Artist=Ann; Bob Exif", "EXIF:Copyright=© Exif Ä", "EXIF:Software=Secret", "EXIF:GPSLatitude=48.25",
        "EXIF:GPSLatitudeRef=N", "EXIF:SerialNumber=Secret", "EXIF:ImageDescription=Secret",
    ]
    private static let iim = [
        "IPTC:CodedCharacterSet=UTF8", "IPTC:By-line=Ida", "IPTC:By-line=Ålice", "IPTC:Credit=Wire",
        "IPTC:CopyrightNotice=© Iim", "IPTC:City=Secret", "IPTC:Caption-Abstract=Secret",
    ]
    private static let xmp = [
        "XMP-dc:Creator=Cid", "XMP-dc:Creator=Dörte & <Co>", "XMP-dc:Rights=© Xmp", "XMP-dc:Rights-de=© Deutsch",
        "XMP-photoshop:Credit=Agency", "XMP-xmpRights:Marked=True", "XMP-xmpRights:WebStatement=https://a.example/?a&b",
        "XMP-xmpRights:UsageTerms=No resale", "XMP-xmpRights:Owner=Owner One",
        "XMP-cc:License=https://creativecommons.org/licenses/by/4.0/", "XMP-plus:LicensorURL=https://l.example/",
        "XMP-plus:LicensorName=Licensor", "XMP-plus:CopyrightOwnerName=Owner Two", "XMP-plus:OtherConstraints=None",
        "XMP-iptcExt:DigitalSourceType=" + source, "XMP-xmp:CreatorTool=Secret", "XMP-exif:GPSLatitude=48.25",
        "XMP-aux:SerialNumber=Secret", "XMP-dc:Description=Secret", "XMP-iptcCore:Location=Secret",
    ]
    private static let readXMP = [
        "[XMP-dc] Creator : Cid, Dörte & <Co>", "[XMP-dc] Rights : © Xmp", "[XMP-dc] Rights-de : © Deutsch",
        "[XMP-photoshop] Credit : Agency", "[XMP-xmpRights] Marked : True",
        "[XMP-xmpRights] WebStatement : https://a.example/?a&b", "[XMP-xmpRights] UsageTerms : No resale",
        "[XMP-xmpRights] Owner : Owner One", "[XMP-cc] License : https://creativecommons.org/licenses/by/4.0/",
        "[XMP-plus] LicensorURL : https://l.example/", "[XMP-plus] LicensorName : Licensor",
        "[XMP-plus] CopyrightOwnerName : Owner Two", "[XMP-plus] OtherConstraints : None",
        "[XMP-iptcExt] DigitalSourceType : " + source,
    ]
    private static let outputs = ["jpeg", "png", "webp", "avif", "jxl", "tiff", "gif"]

    private static func plain(_ format: String) async throws -> [UInt8] {
        let png = try RenderFixture.png(RenderFixture.gradientImage(60, 40))
        return try await RenderFixture.renderer.render(RenderSamples.job(png, format)).bytes
    }

    private static func render(_ original: [UInt8], _ recipe: String) async throws -> [UInt8] {
        var job = try RenderSamples.job(original, recipe)
        job.limits.formats = Set(ImageFormat.decodable)
        return try await RenderFixture.renderer.render(job).bytes
    }

    @Test(arguments: outputs) func `every field is read back, and nothing else`(original: String) async throws {
        let (holdsEXIF, holdsIIM) = (original != "gif", ["jpeg", "tiff"].contains(original))
        let tool = ExifTool()
        for style in ["", "Shorthand"] {
            let words = (holdsEXIF ? Self.exif : []) + (holdsIIM ? Self.iim : []) + Self.xmp
            let tagged = try await tool.tagged(Self.plain(original), "original." + original, words, compact: style)
            var files: [(name: String, bytes: [UInt8])] = []
            for output in Self.outputs {
                files.append(
                    ("variant." + output, try await Self.render(tagged, "crop:40x30+5+5,blur:2,thumbnail:20," + output))
                )
            }
            for (output, found) in zip(Self.outputs, try tool.read(files)) {
                for line in Self.readXMP { #expect(found.contains(line), "\(original) \(output): \(line)\n\(found)") }
                if holdsEXIF, output != "gif" {
                    let lines: Set = ["[IFD0] Artist : Ann; Bob Exif", "[IFD0] Copyright : © Exif Ä"]
                    #expect(lines.isSubset(of: found), "\(original) \(output): \(found)")
                }
                if holdsIIM, ["jpeg", "tiff"].contains(output) {
                    let lines: Set = [
                        "[IPTC] By-line : Ida, Ålice", "[IPTC] Credit : Wire", "[IPTC] CopyrightNotice : © Iim",
                    ]
                    #expect(lines.isSubset(of: found), "\(original) \(output): \(found)")
                } else {
                    #expect(!found.contains { $0.hasPrefix("[IPTC]") })
                }
                for word in ["Secret", "GPS", "Serial", "Thumbnail", "Software", "Description"] {
                    #expect(!found.contains { $0.contains(word) }, "\(original) \(output): \(word)\n\(found)")
                }
            }
        }
    }

    @Test(arguments: ["UTF8", "Latin"]) func `IIM stays IIM, or becomes XMP`(charset: String) async throws {
        let tool = ExifTool()
        let words = Self.iim.dropFirst(charset == "UTF8" ? 0 : 1)
        let tagged = try await tool.tagged(
            Self.plain("jpeg"), "iim.jpeg", Array(words), options: charset == "UTF8" ? [] : ["-charset", "iptc=Latin"])
        #expect(tagged.contains("8BIM\u{4}\u{4}".utf8))
        var files: [(String, [UInt8])] = []
        for output in Self.outputs {
            files.append(("v." + output, try await Self.render(tagged, "thumbnail:20," + output)))
        }
        for (output, found) in zip(Self.outputs, try tool.read(files)) {
            if ["jpeg", "tiff"].contains(output) {
                #expect(found.contains("[IPTC] By-line : Ida, Ålice"), "\(found)")
                #expect(found.contains("[IPTC] CopyrightNotice : © Iim") && found.contains("[IPTC] Credit : Wire"))
                #expect(!found.contains { $0.hasPrefix("[XMP") })
            } else {
                #expect(found.contains("[XMP-dc] Creator : Ida, Ålice"), "\(output) \(found)")
                #expect(found.contains("[XMP-dc] Rights : © Iim") && found.contains("[XMP-photoshop] Credit : Wire"))
            }
        }
        // XMP that is kept gets what it lacks.
        let both = try tool.tagged(tagged, "both.jpeg", ["XMP-dc:Creator=Cid", "XMP-dc:Description=Text"])
        let found = try tool.read([("both.webp", try await Self.render(both, "webp:keep=xmp"))])[0]
        #expect(found.contains("[XMP-dc] Creator : Cid") && found.contains("[XMP-dc] Description : Text"), "\(found)")
        #expect(found.contains("[XMP-dc] Rights : © Iim") && found.contains("[XMP-photoshop] Credit : Wire"))
    }

    @Test func `a picture marked as generated stays marked`() async throws {
        let tool = ExifTool()
        var picture = try await tool.tagged(
            Self.plain("png"), "a.png", ["XMP-iptcExt:DigitalSourceType=" + Self.source], compact: "Shorthand")
        for output in ["webp", "avif", "jpeg", "tiff", "gif", "jxl", "png"] {
            picture = try await Self.render(picture, "crop:30x20+0+0,blur:1,\(output)")
            let found = try tool.read([("a." + output, picture)])[0]
            #expect(found.contains("[XMP-iptcExt] DigitalSourceType : " + Self.source), "\(output) \(found)")
        }
    }

    @Test func `keep=iptc keeps captions, and positions on request`() async throws {
        let tool = ExifTool()
        let tagged = try await tool.tagged(
            Self.plain("jpeg"), "a.jpeg",
            [
                "IPTC:Caption-Abstract=Caption", "IPTC:City=Place", "IPTC:By-line=Ida", "EXIF:Make=Maker",
            ])
        for output in ["jpeg", "tiff"] {
            let files = [
                ("b." + output, try await Self.render(tagged, output + ":keep=iptc")),
                ("c." + output, try await Self.render(tagged, output + ":keep=all")),
                ("d." + output, try await Self.render(tagged, output + ":keep=none")),
            ]
            let found = try tool.read(files)
            for kept in found[..<2] {
                #expect(kept.contains("[IPTC] Caption-Abstract : Caption") && kept.contains("[IPTC] By-line : Ida"))
            }
            #expect(!found[0].contains { $0.contains("Place") } && found[1].contains("[IPTC] City : Place"))
            #expect(found[1].contains("[IFD0] Make : Maker") == (output == "jpeg"), "\(found[1])")
            #expect(!found[2].contains { $0.contains("IPTC") || $0.contains("XMP") }, "\(found[2])")
        }
    }
}

struct ExifTool {
    private static let path = "/usr/bin/exiftool"
    static var isInstalled: Bool { access(path, X_OK) == 0 }

    private let folder = ScratchFolder()

    /// Returns the file with tags such as `XMP-dc:Creator=Ann`.
    ///
    /// - Parameter compact: The form of XMP: empty, or `Shorthand` for attributes.
    func tagged(
        _ bytes: [UInt8], _ name: String, _ tags: [String], compact: String = "", options: [String] = []
    ) throws -> [UInt8] {
        folder.write(bytes, to: name)
        let form = compact.isEmpty ? [] : ["-api", "Compact=" + compact]
        _ = try run(form + options + ["-q", "-m", "-overwrite_original"] + tags.map { "-" + $0 } + [folder(name)])
        return try #require(folder.bytes(name))
    }

    /// Returns the lines for each file, such as `[IFD0] Artist : Ann`.
    func read(_ files: [(name: String, bytes: [UInt8])]) throws -> [Set<String>] {
        for (name, bytes) in files { folder.write(bytes, to: name) }
        let text = try run(
            ["-s", "-a", "-G1", "-XMP:all", "-EXIF:all", "-IPTC:all"] + files.map { folder($0.name) })
        // The program names each file if there are several.
        let parts = files.count == 1 ? [text] : Array(text.split(separator: "======== ").map(String.init))
        return parts.map { part in
            Set(part.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") })
        }
    }

    private func run(_ words: [String]) throws -> String {
        let program = try HelperProgram([Self.path] + words)
        let status = program.waitForEnd()
        try #require(status == 0, "exiftool: \(program.text)")
        return program.text
    }
}
