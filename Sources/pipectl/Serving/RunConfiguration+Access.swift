import PipelineSupport
import Glibc
import ImageServer
import Pipeline
import Variants

extension RunConfiguration {
    /// The maximum size of a fallback picture, in bytes.
    private static let fallbackLimit = 10 << 20

    /// Fills the site's settings that decide who may use the server and for which sources.
    func fillAccess(of site: inout ServerConfiguration, _ settings: Settings, _ errors: inout SettingErrors) {
        site.signature.keys = signingKeys(settings, &errors)
        let (given, followsLinks) = (settings.given("baseURLs"), site.followsFolderLinks)
        errors.collect { () throws(SettingErrors) in
            try given.eachMember { (name, member) throws(SettingErrors) in
                guard let url = member.text() else { return }
                do throws(InvalidSetting) { _ = try BaseURLs([name: url], followsLinks: followsLinks) } catch {
                    throw given.bad(error.message)
                }
            }
        }
        do throws(InvalidSetting) {
            _ = try BaseURLs(site.baseURLs, followsLinks: followsLinks, defaultName: site.defaultBase)
        } catch {
            errors.add(settings.given("defaultBase").bad(error.message), following: "baseURLs")
        }
        if let fallback {
            do throws(FileError) {
                let bytes = try FileText.bytes(fallback, limit: Self.fallbackLimit)
                do throws(InvalidSetting) { _ = try FallbackPicture(bytes, status: nil) } catch {
                    throw FileError("use", fallback, error.message)
                }
                site.fallback = bytes
            } catch {
                errors.add(settings.given("server.fallback").bad(error.description))
            }
        }
    }

    /// Throws if a folder contains no picture with this name.
    private func checkPicture(_ kind: String, _ name: String, _ folder: String?) throws(RecipeError) {
        var isThere = false
        forEachName(in: folder ?? "") { file in
            isThere = file.starts(with: (name + ".").utf8)
            return !isThere
        }
        if isThere { return }
        throw RecipeError(
            expected: "there is no \(kind) `\(name)`"
                + (folder.map { " in \($0)" } ?? "; set `\(kind)s` to the folder with the \(kind)s"))
    }

    /// Fills the site's settings about the recipes that the server renders.
    func fillRecipes(of site: inout ServerConfiguration, _ settings: Settings, _ errors: inout SettingErrors) {
        let known = site.presets ?? RecipePresets.none
        if !allowedRecipes.isEmpty {
            let given = settings.given("recipes.allow")
            var recipes: Set<Recipe> = []
            for (index, text) in allowedRecipes.enumerated() {
                // The meaning of an invalid preset is unknown.
                if text.contains("@"), errors.concern("presets") { continue }
                do throws(RecipeError) {
                    recipes.insert(try Recipe(text, presets: known))
                } catch {
                    errors.add(given.bad(error.message(of: text), member: index))
                }
            }
            site.recipes.allowed = recipes
        }
        if !watermark.isEmpty {
            let given = settings.given("recipes.watermark")
            do throws(RecipeError) {
                let recipe = try Recipe(watermark, presets: known)
                site.recipes.watermark = recipe
                for name in recipe.overlayNames { try checkPicture("overlay", name, pipeline.rendering.overlays) }
                for name in recipe.maskNames { try checkPicture("mask", name, pipeline.rendering.masks) }
                if !recipe.isOfStepsAlone {
                    errors.add(given.bad("`\(watermark)` must consist only of steps; remove outputs and load options"))
                }
            } catch {
                errors.add(given.bad(error.message(of: watermark)))
            }
        }
        if site.recipes.presetsOnly, presets.isEmpty {
            errors.add(
                settings.given("recipes.presetsOnly").bad(
                    "there are no presets, so the server could not render anything; set `presets`"),
                following: "recipes.presetsOnly", "presets")
        }
        if site.recipes.refusesOtherSizes, site.recipes.sizes.isEmpty {
            errors.add(
                settings.given("sizes.strict").bad(
                    "requires `sizes.steps`; set it to true or to a list of sizes"),
                following: "sizes.strict", "sizes.steps")
        }
    }
}
