import ImageServer
import Variants

extension RunConfiguration {
    /// The largest fallback picture, in bytes.
    private static let fallbackLimit = 10 << 20

    /// Fills in who may use the server, and for what.
    func fillAccess(of site: inout ServerConfiguration, _ settings: Settings) throws(CommandFailure) {
        site.signature.keys = try signingKeys()
        func bad(_ key: String, _ problem: String) -> CommandFailure {
            CommandFailure(.usage, "\(settings.origin(key)): `\(key)`: \(problem)")
        }
        if site.recipes.presetsOnly, presets.isEmpty {
            throw bad("recipes.presetsOnly", "there are no presets, so nothing could be rendered; set `presets`")
        }
        if !recipeSteps.isEmpty {
            for name in recipeSteps where !Catalogue.listedNames.contains(name) {
                throw bad(
                    "recipes.steps", "there is no step `\(name)`" + NearestName.hint(name, in: Catalogue.listedNames))
            }
            site.recipes.steps = Set(recipeSteps)
        }
        if strictSizes {
            guard site.recipes.sizes != nil else {
                throw bad(
                    "sizes.strict", "there are no sizes to be strict about; set `sizes.steps`, for example to true")
            }
            site.recipes.sizes?.isStrict = true
        }
        do throws(BaseURLs.Refusal) { site.baseURLs = try BaseURLs(baseURLs) } catch {
            throw bad("baseURLs", error.text)
        }
        if requestRate > 0 { site.rate = RateLimit(rate: requestRate) }
        if let fallback {
            do throws(FileError) {
                let bytes = try FileText.bytes(fallback, limit: Self.fallbackLimit)
                do throws(RenderError) { site.fallback = try FallbackPicture(bytes) } catch {
                    throw FileError("use", fallback, error.message)
                }
            } catch {
                throw bad("server.fallback", error.description)
            }
        }
    }
}
