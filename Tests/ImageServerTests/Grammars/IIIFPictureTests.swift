import Testing

@testable import ImageServer
@testable import Pipeline
@testable import Variants

/// The parameters of the IIIF Image API, applied to images of known sizes.
@Suite struct IIIFPictureTests {
    private static let formats: [IIIFFormat] = [.jpg, .png, .webp, .gif, .tif, .avif]
    private static let unlimited = IIIFLimits(width: 8192, height: 8192, area: .max, areSet: false)

    private static func parameters(_ text: String, _ version: IIIFVersion = .three) throws(Problem) -> IIIFParameters {
        try IIIFParameters(text.split(separator: "/").map(String.init), version, formats)
    }

    /// Returns the recipe without its output, the size and the canonical form for an image, or the error.
    private static func made(
        _ text: String, _ width: Int, _ height: Int, _ version: IIIFVersion = .three, _ limits: IIIFLimits = unlimited
    ) -> (recipe: String, canonical: String) {
        let header = ImageHeader(format: .jpeg, encodedWidth: width, encodedHeight: height)
        do {
            let picture = try IIIFPicture(parameters(text, version), of: header, limits)
            return (try picture.recipe.description, picture.canonical)
        } catch let problem as Problem {
            return ("400", problem.detail ?? "")
        } catch {
            #expect((error as? PipelineError)?.code == .invalidRecipe)
            return ("400", "\(error)")
        }
    }

    @Test(arguments: [
        ("full", "", "full"), ("0,0,600,400", "", "full"), ("0,0,9999999999999999999999,400", "", "full"),
        ("pct:0,0,100,100", "", "full"), ("pct:0,0,200,1e1", "400", ""),
        ("square", "crop:400x400+100+0,", "100,0,400,400"),
        ("10,20,30,40", "crop:30x40+10+20,", "10,20,30,40"), ("010,20,30,40", "crop:30x40+10+20,", "10,20,30,40"),
        ("590,390,100,100", "crop:10x10+590+390,", "590,390,10,10"),
        ("pct:10,10,50,50", "crop:300x200+60+40,", "60,40,300,200"),
        ("pct:0.25,.5,0.0001,0.01", "crop:1x1+2+2,", "2,2,1,1"),
        ("pct:33.333333,0,33.333333,100", "crop:200x400+200+0,", "200,0,200,400"),
        ("pct:99.99,0,1,1", "400", ""), ("pct:0,0,0,10", "400", ""),
        ("0,0,0,10", "400", ""), ("0,0,10,0", "400", ""), ("600,0,10,10", "400", ""), ("0,400,10,10", "400", ""),
        ("-1,0,10,10", "400", ""), ("+1,0,10,10", "400", ""), ("1.0,0,10,10", "400", ""), ("1e1,0,10,10", "400", ""),
        ("0,0,10", "400", ""), ("0,0,10,10,", "400", ""), ("0,0,,10", "400", ""), ("", "400", ""),
        ("pct:0,0,nan,10", "400", ""), ("pct:0,0,inf,10", "400", ""), ("pct:-1,0,10,10", "400", ""),
        ("pct:1.,0,10,10", "400", ""), ("pct:.,0,10,10", "400", ""), ("pct:", "400", ""), ("Full", "400", ""),
        ("0x10,0,10,10", "400", ""), ("٣,0,10,10", "400", ""), (" 1,0,10,10", "400", ""),
    ])
    func `a region is in pixels or in percent of the image`(text: String, recipe: String, canonical: String) {
        let made = Self.made("\(text.isEmpty ? "x" : text)/max/0/default.png", 600, 400)
        if recipe == "400" {
            #expect(made.recipe == "400", "\(made)")
        } else {
            #expect(made.recipe == recipe + "png", "\(text)")
            #expect(made.canonical == canonical + "/max/0/default.png")
        }
    }

    /// The region is 300 × 200 pixels.
    @Test(arguments: [
        // size, the result in version 3, in version 2, and the canonical sizes
        ("max", "", "", "max", "full"), ("^max", "", "400", "max", ""), ("full", "400", "", "", "full"),
        ("150,", "150x100", "150x100", "150,100", "150,"), ("^150,", "150x100", "400", "150,100", ""),
        (",50", "75x50", "75x50", "75,50", "75,"), (",67", "101x67", "101x67", "101,67", "101,"),
        ("1,", "1x1", "1x1", "1,1", "1,"), ("300,", "", "", "max", "full"),
        ("301,", "400", "301x201:stretch:up", "", "301,"),
        ("^301,", "301x201:stretch:up", "400", "%5E301,201", ""),
        ("^,400", "600x400:stretch:up", "400", "%5E600,400", ""),
        ("100,100", "100x100:stretch:up", "100x100:stretch:up", "100,100", "100,100"),
        ("100,201", "400", "100x201:stretch:up", "", "100,201"),
        ("^100,201", "100x201:stretch:up", "400", "%5E100,201", ""),
        ("!100,100", "100x67", "100x67", "100,67", "100,"), ("!100,20", "30x20", "30x20", "30,20", "30,"),
        ("!300,200", "", "", "max", "full"), ("!301,200", "", "", "max", "full"),
        ("!600,500", "400", "600x400:stretch:up", "", "600,"),
        ("^!600,500", "600x400:stretch:up", "400", "%5E600,400", ""),
        ("pct:50", "150x100", "150x100", "150,100", "150,"), ("pct:33.3", "100x67", "100x67", "100,67", "100,"),
        ("pct:100", "", "", "max", "full"), ("pct:100.01", "400", "", "", "full"),
        ("pct:200", "400", "600x400:stretch:up", "", "600,"),
        ("^pct:200", "600x400:stretch:up", "400", "%5E600,400", ""),
        ("pct:0.1", "400", "400", "", ""), ("pct:0", "400", "400", "", ""), ("0,", "400", "400", "", ""),
        (",0", "400", "400", "", ""), ("!0,5", "400", "400", "", ""), ("^8193,1", "400", "400", "", ""),
        ("99999999999999999999,", "400", "400", "", ""), ("^pct:999999999999", "400", "400", "", ""),
        (",", "400", "400", "", ""), ("!,", "400", "400", "", ""), ("!5,", "400", "400", "", ""),
        ("5", "400", "400", "", ""), ("5.0,", "400", "400", "", ""), ("5,5,", "400", "400", "", ""),
        ("-5,", "400", "400", "", ""), ("1e2,", "400", "400", "", ""), ("^^5,", "400", "400", "", ""),
        ("!^5,5", "400", "400", "", ""), ("!max", "400", "400", "", ""), ("^full", "400", "400", "", ""),
        ("pct:nan", "400", "400", "", ""), ("pct:!5", "400", "400", "", ""), ("MAX", "400", "400", "", ""),
    ])
    func `a size is a size of the region`(text: String, third: String, second: String, three: String, two: String) {
        for (version, result, canonical) in [(IIIFVersion.three, third, three), (.two, second, two)] {
            let made = Self.made("10,0,300,200/\(text)/0/default.jpg", 6000, 4000, version)
            guard result != "400" else {
                #expect(made.recipe == "400", "\(text) \(made)")
                continue
            }
            #expect(made.recipe == "crop:300x200+10+0,\(result.isEmpty ? "" : "thumbnail:\(result),")jpeg", "\(text)")
            #expect(made.canonical == "10,0,300,200/\(canonical)/0/default.jpg")
        }
    }

    @Test(arguments: [
        ("0/default.jpg", "jpeg", ""), ("360/color.png", "png", "0/default.png"),
        ("90/gray.webp", "rotate:90,grayscale,webp", ""),
        ("!0/default.tif", "flip:h,tiff", ""), ("!22.50/default.gif", "flip:h,rotate:22.5,gif", "!22.5/default.gif"),
        ("007/default.avif", "rotate:7,avif", "7/default.avif"),
        (".5/default.jpg", "rotate:0.5,jpeg", "0.5/default.jpg"),
        ("0/bitonal.png", "grayscale,contrast:4,contrast:4,contrast:4,contrast:4,contrast:4,png", ""),
        ("361/default.jpg", "400", ""), ("360.1/default.jpg", "400", ""), ("-90/default.jpg", "400", ""),
        ("+90/default.jpg", "400", ""), ("9e1/default.jpg", "400", ""), ("!/default.jpg", "400", ""),
        ("!!0/default.jpg", "400", ""), ("nan/default.jpg", "400", ""), ("0!/default.jpg", "400", ""),
        ("99999999999999999999/default.jpg", "400", ""), ("0/default", "400", ""), ("0/default.", "400", ""),
        ("0/.jpg", "400", ""), ("0/native.jpg", "400", ""), ("0/default.jp2", "400", ""), ("0/default.pdf", "400", ""),
        ("0/default.jxl", "400", ""), ("0/default.jpg.jpg", "400", ""), ("0/default.JPG", "400", ""),
        ("0/grey.jpg", "400", ""),
    ])
    func `rotation, quality and format become steps and an output`(text: String, recipe: String, canonical: String) {
        let made = Self.made("full/max/" + text, 600, 400)
        #expect(made.recipe == recipe, "\(text) \(made)")
        guard recipe != "400" else { return }
        #expect(made.canonical == "full/max/" + (canonical.isEmpty ? text : canonical))
    }

    @Test(arguments: [
        // Limits, the size of the image, and the results of max and ^max
        (500, 500, Int.max, true, "1000x500", "500x250", "500x250"),
        (500, 200, Int.max, true, "1000x500", "400x200", "400x200"),
        (2000, 2000, Int.max, true, "1000x500", "1000x500", "2000x1000"),
        (8192, 8192, 125_000, true, "1000x500", "500x250", "500x250"),
        (8192, 8192, 2_000_000, true, "1000x500", "1000x500", "2000x1000"),
        (8192, 8192, 100, true, "1x10000", "1x100", "1x100"), (8192, 8192, 7, true, "3x3", "2x2", "2x2"),
        (8192, 8192, Int.max, false, "1000x500", "1000x500", "1000x500"),
        (8192, 8192, Int.max, false, "16384x100", "8192x50", "8192x50"),
        (10, 10, Int.max, true, "3000x1", "10x1", "10x1"),
    ])
    func `max obeys the limits and enlarges only up to a limit that is set`(
        width: Int, height: Int, area: Int, areSet: Bool, image: String, largest: String, enlarged: String
    ) throws {
        let limits = IIIFLimits(width: width, height: height, area: area, areSet: areSet)
        let edges = image.split(separator: "x").compactMap { Int($0) }
        for (text, expected) in [("max", largest), ("^max", enlarged)] {
            let made = Self.made("full/\(text)/0/default.png", edges[0], edges[1], .three, limits)
            let size = made.canonical.split(separator: "/")[1].replacing("%5E", with: "").replacing(",", with: "x")
            #expect((size == "max" ? image : String(size)) == expected, "\(text) of \(image)")
        }
    }

    @Test func `a size beyond a limit is refused, and a limit for the width applies to the height`() throws {
        let limits = IIIFLimits(width: 500, height: 500, area: 200_000, areSet: true)
        for (size, isAllowed) in [
            ("500,", true), ("501,", false), (",501", false), ("500,401", false), ("400,500", true),
        ] {
            let made = Self.made("full/\(size)/0/default.png", 1000, 800, .three, limits)
            #expect((made.recipe != "400") == isAllowed, "\(size)")
            #expect(isAllowed || made.canonical.contains("exceeds a maximum in info.json"))
        }
    }

    @Test func `huge percentages of long images are computed without overflow`() {
        let share = "pct:1000000,0,1,1/max/0/default.png"
        #expect(Self.made(share, 10_000_000, 1).recipe == "400")
        #expect(Self.made("pct:0,0,1000000000000,100/max/0/default.png", 8_000, 1).recipe == "png")
        #expect(Self.made("full/^pct:1000000000000/0/default.png", 10_000_000, 1).recipe == "400")
    }
}
