import Testing

@testable import Variants

/// Recipes made of typed steps.
@Suite struct TypedRecipeTests {
    @Test func `typed steps have the canonical text of the recipe that says the same`() throws {
        let recipe = Recipe.thumbnail(300, 200, .fill).roundedMask(24).webp(80)
        #expect(recipe.description == "thumbnail:300x200:fill,rounded-mask:24,webp:80")
        #expect(try recipe == Recipe("thumbnail:300x200:fill,rounded-mask:24,webp:80") && recipe.error == nil)
        #expect(try Recipe().dpr(2).thumbnail(150, .pad).blur(1.5) == Recipe("dpr:2,thumbnail:150:pad,blur:1.5"))
        #expect(try Recipe.thumbnail(nil, 200).auto() == Recipe("thumbnail:x200,auto"))
        #expect(try Recipe().scaled(0.5).background(0xfff) == Recipe("scaled:0.5,background:000fff"))
        let presets = try RecipePresets(["card": "thumbnail:300"])
        #expect(try Recipe("@card", presets: presets).png().description == "thumbnail:300x300,png")
    }

    @Test func `every operation and output can be typed, with the same canonical text`() throws {
        let writer = RecipeWriter(seed: 5)
        var typed: Set<String> = []
        for _ in 0..<3000 {
            let parsed = try Recipe(writer.recipe())
            let recipe = try Self.typed(parsed, &typed)
            #expect(recipe.error == nil && recipe.description == parsed.description)
        }
        let outputs = OutputSpecification.Kind.allCases.map(\.rawValue)
        #expect(typed == Set(Catalog.operations.map { $0.token } + outputs))
    }

    @Test(arguments: [
        (Recipe().blur(0), "blur:0"), (Recipe().scaled(.nan), "scaled:nan"), (Recipe().brightness(-1), "brightness:-1"),
        (Recipe().scaled(1e300), "1e+300"), (Recipe().mask("a/b"), "a/b"),
        (Recipe().tint(0xffff_ffff), "tint:ffffffff"),
        (Recipe().background(0x1_0000_00), "background:1000000"), (Recipe().extend(1, 2), "extend:1:2"),
        (Recipe().roundedMask(), "rounded-mask"), (Recipe().jpeg().blur(2), "jpeg"),
        (Recipe().webp(80, .lossless), "lossless"), (Recipe().gif(.keep(.exif)), "gif"), (Recipe().png(80), "png"),
        ((0..<33).reduce(Recipe()) { recipe, _ in recipe.circle() }, "at most 32 steps"),
    ]) func `a value out of range is an error that names its step, and no crash`(recipe: Recipe, words: String) throws {
        let error = try #require(recipe.error)
        #expect("\(error)".contains(words), "\(error)")
        // Whatever is added, the first fault stays.
        #expect(recipe.grayscale().error?.step == error.step)
        #expect(throws: RecipeError.self) { try Recipe(recipe.description) }
    }

    @Test func `a renderer refuses a recipe with an error`() async throws {
        var job = try WorkerPoolTests.job()
        job.recipe = Recipe().blur(0)
        let error = await #expect(throws: RenderError.self) { try await RenderFixture.renderer.render(job) }
        #expect(error?.code == .notApplicable && error?.message.contains("blur:0") == true)
    }

    /// The recipe again, made of typed steps.
    private static func typed(_ parsed: Recipe, _ seen: inout Set<String>) throws -> Recipe {
        var recipe = Recipe()
        if !parsed.orients { recipe = recipe.unoriented() }
        if parsed.keepsProfile { recipe = recipe.keepingProfile() }
        recipe =
            switch parsed.frames {
            case .first: recipe
            case .all: recipe.allFrames()
            case .count(let count): recipe.frames(count)
            }
        if parsed.page > 1 { recipe = recipe.page(parsed.page) }
        for step in parsed.steps {
            seen.insert(type(of: step).token)
            recipe = try typed(recipe, step)
        }
        guard let output = parsed.output else { return recipe }
        seen.insert(output.kind.rawValue)
        return ended(recipe, output)
    }

    private static func number(_ color: Color) -> UInt32 {
        UInt32(color.red) << 16 | UInt32(color.green) << 8 | UInt32(color.blue)
    }

    private static func length(_ length: EdgeLength) -> Recipe.Length {
        switch length {
        case .pixels(let pixels): .pixels(pixels)
        case .share(let share): .percent(share * 100)
        }
    }

    private static func typed(_ recipe: Recipe, _ step: any VariantOperation) throws -> Recipe {
        switch step {
        case let step as Thumbnail:
            var (gravity, focus) = (Gravity?.none, (x: Double, y: Double)?.none)
            switch step.anchor {
            case .center: break
            case .gravity(let place): gravity = place
            case .focus(let x, let y): focus = (x, y)
            }
            return recipe.thumbnail(
                step.box.width, step.box.height, step.mode, up: step.enlarges, gravity: gravity, focus: focus,
                resample: step.resample, light: step.light)
        case let step as Scaled: return recipe.scaled(step.factor, light: step.light)
        case let step as RoundedMask:
            let radii = step.radii.map(length)
            return recipe.roundedMask(radii[0], radii[1], radii[2], radii[3])
        case is Circle: return recipe.circle()
        case let step as NamedMask: return recipe.mask(step.name, covers: step.fit == .cover)
        case let step as Crop:
            let gravity: Gravity? = if case .gravity(let place) = step.anchor, step.offset == nil { place } else { nil }
            return recipe.crop(step.width, step.height, at: step.offset, gravity: gravity)
        case let step as Trim: return recipe.trim(step.threshold)
        case let step as Rotate: return recipe.rotate(step.degrees)
        case let step as Flip:
            return recipe.flip(horizontally: step.horizontally, vertically: step.vertically)
        case let step as Blur: return recipe.blur(step.sigma)
        case let step as Sharpen: return recipe.sharpen(step.sigma)
        case let step as Pixelate: return recipe.pixelate(step.edge)
        case is Grayscale: return recipe.grayscale()
        case let step as Tint: return recipe.tint(number(step.color))
        case let step as Brightness: return recipe.brightness(step.factor)
        case let step as Contrast: return recipe.contrast(step.factor)
        case let step as Saturation: return recipe.saturation(step.factor)
        case let step as Background: return recipe.background(number(step.color), alpha: step.color.alpha)
        case let step as Extend:
            return recipe.extend(step.margins[0], step.margins[1], step.margins[2], step.margins[3])
        case let step as Border: return recipe.border(step.width, number(step.color))
        case let step as Overlay:
            let size: Recipe.OverlaySize =
                switch step.size {
                case .factor(let factor): .factor(factor)
                case .share(let share): .percent(share * 100)
                case .box(let box): .box(box.width, box.height)
                }
            let least = step.least.map { ($0.width, $0.height) }
            if let gap = step.gap {
                return recipe.tiledOverlay(
                    step.name, opacity: step.opacity, size: size, gap: (length(gap.x), length(gap.y)), from: least)
            }
            return recipe.overlay(
                step.name, gravity: step.gravity, opacity: step.opacity, size: size,
                offset: (length(step.offset.x), length(step.offset.y)), from: least)
        default:
            Issue.record("\(type(of: step).token) has no typed method")
            return recipe
        }
    }

    private static func ended(_ recipe: Recipe, _ output: OutputSpecification) -> Recipe {
        let none = Recipe.OutputOption(text: nil)
        let quality = output.quality.map { Recipe.OutputOption.quality($0) } ?? none
        let lossless: Recipe.OutputOption = output.isLossless ? .lossless : none
        let progressive: Recipe.OutputOption = output.isProgressive ? .progressive : none
        let most = output.maxBytes.map { Recipe.OutputOption.maxBytes($0) } ?? none
        let score = output.score.map { Recipe.OutputOption.score($0) } ?? none
        let chroma: Recipe.OutputOption =
            switch output.chroma {
            case .auto: none
            case .full: .fullChroma
            case .half: .halfChroma
            }
        let effort = output.effort.map { Recipe.OutputOption.effort($0) } ?? none
        let keep = output.keep.map { Recipe.OutputOption.keep($0) } ?? none
        switch output.kind.rawValue {
        case "jpeg": return recipe.jpeg(quality, progressive, most, score, chroma, keep)
        case "png": return recipe.png(lossless, progressive, most, effort, keep)
        case "webp": return recipe.webp(quality, lossless, most, score, effort, keep)
        case "avif": return recipe.avif(quality, lossless, most, score, chroma, effort, keep)
        case "gif": return recipe.gif(most, keep)
        case "jxl": return recipe.jxl(quality, lossless, most, score, effort, keep)
        case "tiff": return recipe.tiff(most, keep)
        case "auto": return recipe.auto(quality, lossless, progressive, most, score, chroma, effort, keep)
        case "original": return recipe.original(quality, lossless, progressive, most, score, chroma, effort, keep)
        default:
            Issue.record("\(output.kind.rawValue) has no typed method")
            return recipe
        }
    }
}
