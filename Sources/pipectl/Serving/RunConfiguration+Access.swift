import PipelineSupport
import Glibc
import ImageServer
import Pipeline
import Variants

extension RunConfiguration {
    /// The largest fallback picture, in bytes.
    private static let fallbackLimit = 10 << 20

    /// Fills in who may use the server, and what for.
    func fillAccess(of site: inout ServerConfiguration, _ settings: Settings, _ errors: inout SettingErrors) {
        site.signature.keys = signingKeys(settings, &errors)
        let given = settings.given("baseURLs")
        errors.collect { () throws(SettingErrors) in
            try given.eachMember { (member) throws(SettingErrors) in
                guard case .string(let url) = member.value else { return }
                do throws(BaseURLs.Refusal) { _ = try BaseURLs([member.name: url], followsLinks: followsLinks) } catch {
                    throw given.bad(error.text)
                }
            }
        }
        // What is refused is among the errors.
        do throws(BaseURLs.Refusal) {
            let usual = defaultBase.isEmpty ? nil : defaultBase
            site.baseURLs = try BaseURLs(baseURLs, followsLinks: followsLinks, usual: usual)
        } catch {
            errors.add(settings.given("defaultBase").bad(error.text), following: "baseURLs")
        }
        for (index, pattern) in referrers.enumerated() {
            guard let remedy = pattern.withoutPath else { continue }
            errors.add(
                settings.given("server.referrers").bad(
                    "`\(pattern)` has a path, which would refuse every page: browsers send other sites only the origin of a "
                        + "page; write `\(remedy)`", member: index))
        }
        if !referrers.isEmpty { site.referrers = .list(referrers) }
        if !mountPoint.isEmpty {
            if mountPoint.hasPrefix("/"), !mountPoint.hasSuffix("/"), !mountPoint.contains(where: "?# ".contains) {
                site.mountPoint = mountPoint
            } else {
                errors.add(
                    settings.given("server.mountPoint").bad(
                        "it is a path that begins with a slash and ends without one: /images"))
            }
        }
        if requestRate > 0 { site.rate = RateLimit(rate: requestRate) }
        if let fallbackStatus, fallbackStatus != 200, fallbackStatus < 400 {
            errors.add(settings.given("server.fallbackStatus").bad("a picture has the status 200, or one from 400 on"))
        }
        if let fallback {
            do throws(FileError) {
                let bytes = try FileText.bytes(fallback, limit: Self.fallbackLimit)
                do throws(RenderError) {
                    site.fallback = try FallbackPicture(bytes, status: fallbackStatus)
                } catch {
                    throw FileError("use", fallback, error.message)
                }
            } catch {
                errors.add(settings.given("server.fallback").bad(error.description))
            }
        }
    }

    /// Throws if a folder has no picture of this name.
    private func checkPicture(_ kind: String, _ name: String, _ folder: String?) throws(RecipeError) {
        let names = folder.flatMap({ opendir($0) }).map { stream -> [String] in
            defer { closedir(stream) }
            var names: [String] = []
            while let item = readdir(stream) {
                names.append(
                    withUnsafePointer(to: &item.pointee.d_name) {
                        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                    })
            }
            return names
        }
        guard names?.contains(where: { $0.hasPrefix(name + ".") }) != true else { return }
        throw RecipeError(expected: "there is no \(kind) `\(name)` in " + (folder ?? "a folder: set `\(kind)s`"))
    }

    /// Fills in which recipes the server makes.
    func fillRecipes(of site: inout ServerConfiguration, _ settings: Settings, _ errors: inout SettingErrors) {
        if !allowedRecipes.isEmpty {
            let given = settings.given("recipes.allow")
            var recipes: Set<Recipe> = []
            for (index, text) in allowedRecipes.enumerated() {
                // What a faulty preset stands for is not known.
                if text.contains("@"), errors.concern("presets") { continue }
                do throws(RecipeError) {
                    recipes.insert(try Recipe(text, presets: site.presets))
                } catch {
                    errors.add(given.bad(error.message(of: text), member: index))
                }
            }
            site.recipes.allowed = recipes
        }
        if !recipeSteps.isEmpty {
            let given = settings.given("recipes.steps")
            for (index, name) in recipeSteps.enumerated() where !Catalogue.listedNames.contains(name) {
                let hint = NearestName.hint(name, in: Catalogue.listedNames)
                errors.add(given.bad("there is no step `\(name)`" + hint, member: index))
            }
            site.recipes.steps = Set(recipeSteps)
        }
        let suffixes = settings.given("recipes.suffixes")
        for (index, step) in site.recipes.suffixes.enumerated() {
            // A ratio is an error without a step that it changes.
            do throws(RecipeError) { _ = try Recipe(step.hasPrefix("dpr") ? step + ",thumbnail:64" : step) } catch {
                errors.add(suffixes.bad("`\(step)`: \(error.description)", member: index))
            }
        }
        if !watermark.isEmpty {
            let given = settings.given("recipes.watermark")
            do throws(RecipeError) {
                let recipe = try Recipe(watermark, presets: site.presets)
                site.recipes.watermark = recipe
                for name in recipe.overlayNames { try checkPicture("overlay", name, pipeline.overlays) }
                for name in recipe.maskNames { try checkPicture("mask", name, pipeline.masks) }
                if !recipe.isOfStepsAlone {
                    errors.add(given.bad("`\(watermark)` is to have steps, and neither an output nor a load option"))
                }
            } catch {
                errors.add(given.bad(error.message(of: watermark)))
            }
        }
        if site.recipes.presetsOnly, presets.isEmpty {
            errors.add(
                settings.given("recipes.presetsOnly").bad(
                    "there are no presets, so nothing could be rendered; set `presets`"),
                following: "recipes.presetsOnly", "presets")
        }
        if strictSizes, site.recipes.sizes == nil {
            errors.add(
                settings.given("sizes.strict").bad(
                    "there are no sizes to be strict about; set `sizes.steps`, for example to true"),
                following: "sizes.strict", "sizes.steps")
        }
        if strictSizes { site.recipes.sizes?.isStrict = true }
    }
}
