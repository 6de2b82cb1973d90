import Testing

@testable import ImageServer
@testable import Variants

@Suite struct ImgproxyGeometryTests {
    typealias Case = (options: String, size: String)

    @Test(arguments: [
        ("rs:fit:50:20", "40x20"), ("rs:fit:300:300", "200x100"), ("rs:fit:0:50", "100x50"),
        ("rs:fit:300:125:1", "250x125"), ("rs:fit:20:50:0:1", "20x50"), ("rs:fit:0:200:0:1", "200x200"),
        ("rs:fit:300:0:0:1", "300x100"), ("rs:fit:300:125/exar:1", "240x100"), ("rs:fit:250:500/exar:1", "200x400"),
        ("rs:fill:300:300", "200x100"), ("rs:fill:300:50", "200x50"), ("rs:fill:100:300", "100x100"),
        ("rs:fill:0:200", "200x100"), ("rs:fill:100:300:0:1", "100x300"), ("rs:fill:300:300/exar:1", "200x200"),
        ("rs:fill-down:300:300", "100x100"), ("rs:fill-down:300:125", "200x83"), ("rs:fill-down:250:300", "83x100"),
        ("rs:fill-down:250:300/exar:1", "83x100"), ("rs:fill:26:100/dpr:2", "26x100"),
        ("rs:fill:26:100/dpr:0.5", "13x50"), ("w:500/h:500/ex:1/dpr:2", "500x500"),
        ("w:500/h:500/ex:1/dpr:0.5", "250x250"), ("w:300/h:600/exar:1/dpr:0.5", "150x300"),
        ("rs:force:50:0", "50x100"), ("mw:300", "300x150"), ("rs:auto:50:80", "50x25"), ("rs:auto:80:50", "80x50"),
        ("", "200x100"),
    ])
    func `results of a picture of 200 × 100 pixels have the documented sizes`(_ item: Case) throws {
        #expect(try ImgproxyTesting.size(item.options) == item.size)
    }

    @Test(arguments: [
        ("mrd:50/rs:fill:1000:50", "50x13"), ("mrd:50/rs:fill-down:100:1000", "5x50"),
        ("mrd:100/rot:90/rs:fill:100:150", "67x100"), ("mrd:200/pd:100:200:300:400/rs:fit:100:100", "200x129"),
        ("mrd:200/pd:100:200:300:400/rs:fill:100:100", "200x144"), ("mrd:0/rs:fit:100:100", "100x50"),
    ])
    func `a maximum result dimension shrinks the complete result`(_ item: Case) throws {
        #expect(try ImgproxyTesting.size(item.options) { $0.securityOptions = true } == item.size)
        let option = item.options.split(separator: "/")
        let limit = try #require(Int(option[0].dropFirst(4)))
        let rest = option.dropFirst().joined(separator: "/")
        #expect(try ImgproxyTesting.size(rest) { $0.maxResultDimension = limit } == item.size)
    }

    @Test(arguments: [
        ("c:50:50:ce:10:10", "crop:50x50+86+36"), ("c:50:50:soea:10:0.1", "crop:50x50+140+40"),
        ("c:0.5:0:no", "crop:100x100+50+0"), ("c:0.001:20:nowe", "crop:1x20+0+0"), ("c:500:500", ""),
        ("c:50:50/g:soea:10:0.1", "crop:50x50+140+40"), ("c:50:50:fp:1:0", "crop:50x50+150+0"),
        ("c:50.9:50:fp:0.5:0.5", "crop:50x50+75+25"), ("c:50:50:sm", "crop:50x50:gravity=attention"),
        ("c:50:50:ea:-900:-900", "crop:50x50+150+0"), ("c:50:50:we:900:900", "crop:50x50+150+50"),
        ("c:50:50:nowe:-0.1:0.2", "crop:50x50+0+20"), ("c:100:0/dpr:2/g:we:30", "crop:100x100+30+0"),
        ("c:100:0:we:30/dpr:0.5", "crop:100x100+30+0,thumbnail:50x50:stretch:up"),
    ])
    func `a crop has the window that its gravity gives`(_ item: Case) throws {
        #expect(try ImgproxyTesting.steps(item.options) == item.size)
    }

    @Test func `the window of the result has the offset that its gravity gives`() throws {
        #expect(
            try ImgproxyTesting.steps("rs:fill:100:26/g:no:0:5")
                == "thumbnail:100x50:stretch:up,crop:100x26+0+5")
        // Offsets in pixels follow the pixel ratio, and fractions are of the scaled picture.
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:13/g:so:0:5/dpr:2")
                == "thumbnail:100x50:stretch:up,crop:100x26+0+14")
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:50/g:ea:0.1")
                == "thumbnail:100x50:stretch:up,crop:50x50+40+0")
    }

    @Test func `a picture is placed on its canvas by the gravity of the extension`() throws {
        #expect(try ImgproxyTesting.steps("rs:fit:20:50:0:1") == "thumbnail:20x10:stretch:up,extend:20:0:20:0")
        #expect(
            try ImgproxyTesting.steps("rs:fit:20:50:0:1:so:0:5") == "thumbnail:20x10:stretch:up,extend:35:0:5:0")
        #expect(
            try ImgproxyTesting.steps("s:20:50/ex:1:fp:0.5:0.9") == "thumbnail:20x10:stretch:up,extend:40:0:0:0")
        #expect(try ImgproxyTesting.steps("rs:fit:300:125/exar:1:we") == "extend:0:40:0:0")
        // Both extensions and the padding are one step.
        #expect(try ImgproxyTesting.steps("s:200:200/ex:1:no/pd:1:2:3:4") == "extend:1:2:103:4")
        // An extension never cuts.
        #expect(
            try ImgproxyTesting.steps("mw:400/w:100/h:40/ex:1") == "thumbnail:400x200:stretch:up,crop:100x40+150+80")
    }

    // MARK: Properties

    struct Variation: Sendable {
        var text: String
        var type: String
        var width: Int
        var height: Int
        var enlarges: Bool
        var extends: Bool
        var dpr: Double
        var picture: PixelPair
    }

    /// Combinations of all resizing types with sizes, flags, ratios and pictures.
    static let variations: [Variation] = {
        var result: [Variation] = []
        let pictures = [
            PixelPair(200, 100), PixelPair(1, 1), PixelPair(4000, 3000), PixelPair(1000, 1), PixelPair(133, 277),
        ]
        let sizes = [(0, 0), (50, 20), (300, 0), (0, 200), (97, 331), (1, 1), (1200, 1200), (200, 100)]
        for type in ["fit", "fill", "fill-down", "force", "auto"] {
            for (width, height) in sizes {
                for flags in 0..<4 {
                    for dpr in [0.5, 1, 3] {
                        for picture in pictures {
                            let (enlarges, extends) = (flags & 1 != 0, flags & 2 != 0)
                            let text = "rs:\(type):\(width):\(height):\(flags & 1):\(flags / 2)/dpr:\(dpr)"
                            result.append(
                                Variation(
                                    text: text, type: type, width: width, height: height, enlarges: enlarges,
                                    extends: extends, dpr: dpr, picture: picture))
                        }
                    }
                }
            }
        }
        return result
    }()

    private func geometry(_ text: String, _ picture: PixelPair, limit: Int = 0) throws -> ImgproxyGeometry {
        let options = try ImgproxyTesting.choice(text).options
        return ImgproxyGeometry(options, original: picture, limit: limit, enlarges: options.enlarges)
    }

    @Test func `a picture is enlarged only by enlarge and minimum sizes`() throws {
        for item in Self.variations where !item.enlarges {
            let geometry = try geometry(item.text, item.picture)
            #expect(geometry.scaled.fits(in: item.picture), "\(item)")
            #expect(geometry.scaled.min() >= 1 && geometry.visible.min() >= 1, "\(item)")
        }
    }

    @Test func `fill with enlarge has exactly the requested size`() throws {
        for item in Self.variations where item.type == "fill" && item.enlarges && item.width * item.height > 0 {
            let geometry = try geometry(item.text, item.picture)
            let wanted = PixelPair(SIMD2(Double(item.width), Double(item.height)) * item.dpr)
            #expect(geometry.visible == wanted, "\(item)")
        }
    }

    @Test func `only force changes the ratio of the picture`() throws {
        for item in Self.variations where item.type != "force" && item.dpr >= 1 {
            let scaled = try geometry(item.text, item.picture).scaled
            let scale = SIMD2<Double>(scaled) / SIMD2(item.picture)
            // Each edge is rounded by at most half a pixel, and is at least one pixel.
            let error = abs(scale.x - scale.y) * Double(item.picture.min())
            #expect(error <= 1.001 || scaled.min() == 1, "\(item)")
        }
    }

    @Test func `fit stays within the requested size, and extend fills it`() throws {
        for item in Self.variations where item.type == "fit" {
            let geometry = try geometry(item.text, item.picture)
            if item.width > 0 { #expect(geometry.scaled.x <= max(1, geometry.target.x), "\(item)") }
            if item.height > 0 { #expect(geometry.scaled.y <= max(1, geometry.target.y), "\(item)") }
        }
        for item in Self.variations where item.extends && item.picture.max() < 500 {
            let size = try ImgproxyTesting.size(item.text, ImgproxyTesting.header(item.picture.x, item.picture.y))
            let target = try geometry(item.text, item.picture).target
            let edges = size.split(separator: "x").compactMap { Int($0) }
            if target.x > 0 { #expect(edges[0] == target.x, "\(item)") }
            if target.y > 0 { #expect(edges[1] == target.y, "\(item)") }
        }
    }

    @Test func `fill-down keeps the requested ratio`() throws {
        for item in Self.variations where item.type == "fill-down" && item.width * item.height > 0 && item.dpr == 1 {
            let visible = SIMD2<Double>(try geometry(item.text, item.picture).visible)
            let wanted = SIMD2(Double(item.width), Double(item.height))
            guard visible.min() > 1 else { continue }
            #expect(abs(visible.x * wanted.y - visible.y * wanted.x) <= wanted.max() * 0.51, "\(item)")
        }
    }

    @Test func `a wider box never makes the result narrower`() throws {
        for type in ["fit", "fill", "fill-down", "force"] {
            for enlarges in 0...1 {
                var last = 0
                for width in 1...400 {
                    let geometry = try geometry("rs:\(type):\(width):0:\(enlarges)", PixelPair(200, 100))
                    #expect(geometry.visible.x >= last, "\(type) \(width)")
                    last = geometry.visible.x
                }
                #expect(last == (enlarges == 1 ? 400 : 200))
            }
        }
    }

    @Test func `rotating by a quarter turn exchanges the edges of the original`() throws {
        for item in Self.variations where item.picture.max() < 500 {
            let (width, height) = (item.picture.x, item.picture.y)
            let turned = try ImgproxyTesting.size(item.text + "/rot:90", ImgproxyTesting.header(width, height))
            #expect(try ImgproxyTesting.size(item.text, ImgproxyTesting.header(height, width)) == turned, "\(item)")
            let upright = try ImgproxyTesting.size(
                item.text, ImgproxyTesting.header(height, width, orientation: 6))
            #expect(
                try ImgproxyTesting.size(item.text, ImgproxyTesting.header(width, height)) == upright, "\(item)")
        }
    }

    @Test func `no result exceeds the maximum dimension`() throws {
        for item in Self.variations where item.picture.max() < 500 {
            for limit in [1, 10, 64] {
                let header = ImgproxyTesting.header(item.picture.x, item.picture.y)
                let size = try ImgproxyTesting.size(item.text + "/pd:3:7", header) { $0.maxResultDimension = limit }
                let edge = try #require(size.split(separator: "x").compactMap { Int($0) }.max())
                // Picture, margins and padding are rounded separately, and the picture keeps at least one pixel.
                #expect(edge <= limit + 3, "\(item) \(limit)")
            }
        }
    }

    @Test func `a thumbnail step in the short form has the size of the long form`() throws {
        var shortForms = 0
        for item in Self.variations {
            let header = ImgproxyTesting.header(item.picture.x, item.picture.y)
            let geometry = try geometry(item.text, item.picture)
            guard geometry.scaled.max() <= 8192, !item.extends else { continue }
            shortForms += try ImgproxyTesting.steps(item.text, header).contains("stretch") ? 0 : 1
            #expect(try ImgproxyTesting.size(item.text, header) == geometry.visible.text, "\(item)")
        }
        #expect(shortForms > 300)
    }

    // MARK: Turning back

    /// Returns a picture of `width` × `height` pixels, each with its own number.
    private func picture(_ width: Int, _ height: Int) -> [[Int]] {
        (0..<height).map { row in (0..<width).map { row * width + $0 } }
    }

    private func rotated(_ rows: [[Int]], _ degrees: Int) -> [[Int]] {
        var rows = rows
        for _ in 0..<(degrees / 90) {
            rows = (0..<rows[0].count).map { column in rows.reversed().map { $0[column] } }
        }
        return rows
    }

    private func flipped(_ rows: [[Int]], _ horizontally: Bool, _ vertically: Bool) -> [[Int]] {
        let rows = vertically ? rows.reversed() : rows
        return horizontally ? rows.map { $0.reversed() } : rows
    }

    /// Returns a stored picture the right way up (EXIF 2.3, tag 274).
    private func upright(_ rows: [[Int]], _ orientation: Int) -> [[Int]] {
        let turns = [1: 0, 2: 0, 3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270]
        return flipped(rotated(rows, turns[orientation] ?? 0), [2, 4, 5, 7].contains(orientation), false)
    }

    private func cropped(_ rows: [[Int]], _ x: Int, _ y: Int, _ width: Int, _ height: Int) -> [[Int]] {
        rows[y..<(y + height)].map { Array($0[x..<(x + width)]) }
    }

    /// Moves the pixels as the steps of a recipe say.
    private func applied(_ recipe: Recipe, to rows: [[Int]], orientation: Int) throws -> [[Int]] {
        var rows = recipe.orients ? upright(rows, orientation) : rows
        for step in recipe.steps {
            switch step {
            case let step as Crop:
                let offset = try #require(step.offset)
                rows = cropped(rows, offset.x, offset.y, step.width, step.height)
            case let step as Rotate: rows = rotated(rows, Int(step.degrees))
            case let step as Flip: rows = flipped(rows, step.horizontally, step.vertically)
            default: Issue.record("unexpected step \(step)")
            }
        }
        return rows
    }

    @Test(arguments: 1...8, [0, 90, 180, 270])
    func `a crop shows the part of the turned picture that its gravity names`(
        _ orientation: Int, _ rotation: Int
    ) throws {
        let places: [(name: String, x: Int, y: Int)] = [
            ("nowe:2:1", 2, 1), ("no:0:1", -1, 1), ("noea:1:2", 101, 2), ("we:3:0", 3, -1), ("ea:0:0", 100, -1),
            ("sowe:1:1", 1, 101), ("so:0:3", -1, 103), ("soea:2:2", 102, 102), ("ce:1:-1", -1, -1),
        ]
        for flips in 0..<4 {
            for keepsStored in [false, true] {
                for place in places {
                    var options = "c:4:3:\(place.name)/rot:\(rotation)/fl:\(flips & 1):\(flips / 2)"
                    if keepsStored { options += "/ar:0" }
                    let stored = picture(13, 10)
                    let start = keepsStored ? stored : upright(stored, orientation)
                    let turned = flipped(rotated(start, rotation), flips & 1 == 1, flips / 2 == 1)
                    let (restX, restY) = (turned[0].count - 4, turned.count - 3)
                    func middle(_ rest: Int, _ offset: Int) -> Int {
                        // (rest + 1) ÷ 2, halves to the even number.
                        let half = (rest + 1) / 2
                        return (rest % 2 == 0 && half % 2 == 1 ? half + 1 : half) + offset
                    }
                    let isMiddle = place.name.hasPrefix("ce")
                    let x =
                        place.x >= 100
                        ? restX - (place.x - 100) : place.x >= 0 ? place.x : middle(restX, isMiddle ? 1 : 0)
                    let y =
                        place.y >= 100
                        ? restY - (place.y - 100) : place.y >= 0 ? place.y : middle(restY, isMiddle ? -1 : 0)
                    let expected = cropped(turned, x, y, 4, 3)
                    let header = ImgproxyTesting.header(13, 10, orientation: orientation)
                    let recipe = try #require(try ImgproxyTesting.choice(options).settle(header, accepted: []))
                    #expect(try applied(recipe, to: stored, orientation: orientation) == expected, "\(options)")
                }
            }
        }
    }

    @Test func `each side of a turned picture has its side before turning`() {
        for (rotation, flips) in (0..<16).map({ ($0 / 4, $0 % 4) }) {
            let (horizontally, vertically) = (flips & 1 == 1, flips / 2 == 1)
            let turn = ImgproxyTurn(
                quarters: rotation, flipsHorizontally: horizontally, flipsVertically: vertically)
            let start = picture(3, 3)
            let turned = flipped(rotated(start, rotation * 90), horizontally, vertically)
            for (row, column) in (0..<9).map({ ($0 / 3, $0 % 3) }) {
                let side = turn.back(SIMD2(column - 1, row - 1))
                #expect(start[side.y + 1][side.x + 1] == turned[row][column], "\(rotation) \(flips)")
            }
        }
    }

    @Test func `gravities of the short form are turned back`() throws {
        let header = ImgproxyTesting.header(200, 100)
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:50/g:no/rot:90", header)
                == "thumbnail:50x50:fill:gravity=west,rotate:90")
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:40/g:nowe/rot:90/fl:1", header)
                == "thumbnail:40x50:fill:gravity=north-west,rotate:90,flip:h")
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:50/g:fp:0.25:1/rot:180", header)
                == "thumbnail:50x50:fill:focus=0.75x0,rotate:180")
        #expect(
            try ImgproxyTesting.steps("rs:fill:50:50/g:ea/fl:1:1", header)
                == "thumbnail:50x50:fill:gravity=west,flip:hv")
    }
}
