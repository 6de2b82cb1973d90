import ImageServer
import PipelineSupport
import Variants

/// The keys that sign paths, from the `keys` and `keysFile` settings.
extension RunConfiguration {
    /// Returns all keys, beginning with the keys in `keys`. An invalid line causes an error that does not contain the
    /// key.
    func signingKeys(_ settings: Settings, _ errors: inout SettingErrors) -> [SigningKey] {
        guard let path = keysFile else { return site.keys }
        let text: String
        do throws(FileError) { text = try FileText.read(path, limit: 1 << 20) } catch {
            errors.add(settings.given("keysFile").bad(error.description))
            return site.keys
        }
        var all = site.keys
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let plain = line.trimmingSpace()
            guard !plain.isEmpty, !plain.hasPrefix("#") else { continue }
            func bad(_ problem: String) {
                var error = SettingError(.badFile, .file(path, line: index + 1), problem, key: "keysFile")
                error.isCombined = true
                errors.add([error])
            }
            let parts = plain.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2 else {
                bad("expected NAME: KEY, with the key in hexadecimal digits")
                continue
            }
            let (name, hex) = (parts[0].trimmingSpace(), parts[1].trimmingSpace())
            guard !all.contains(where: { $0.id == name }) else {
                bad("the key `\(name)` is defined twice")
                continue
            }
            do throws(InvalidSetting) { all.append(try SigningKey(id: name, hex: hex)) } catch { bad(error.message) }
        }
        return all
    }
}

extension Settings {
    /// Checks that a server with these settings has the route enabled and renders the recipe.
    func checkSigned(_ route: ImageRoute, recipe text: String? = nil) throws {
        var errors = errors
        let configuration = configuration(
            serves: true,
            only: ["presets", "limits.steps", "recipes.", "sizes.", "server.routes", "masks", "overlays"], &errors)
        var site = configuration.site
        // Invalid presets have already been added to the errors.
        let presets = (try? configuration.recipePresets()) ?? RecipePresets.none
        site.presets = presets
        configuration.fillRecipes(of: &site, self, &errors)
        try errors.check()
        guard site.openRoutes.contains(route) else {
            throw CommandFailure(.usage, "/\(route.rawValue) is disabled by the setting `server.routes`")
        }
        // If these settings contain no presets, only the server knows them.
        guard let text, !text.contains("@") || !configuration.presets.isEmpty else { return }
        let recipe = try Recipe(usage: text, presets: presets)
        if let reason = site.recipes.refusal(of: recipe, text: text) {
            throw CommandFailure(.usage, "recipe `\(text)`: \(reason)")
        }
    }

    /// Returns the keys, for commands that need no other settings.
    func signingKeys() throws(SettingErrors) -> [SigningKey] {
        var errors = errors
        let keys = configuration(serves: true, only: ["keys"], &errors).signingKeys(self, &errors)
        try errors.check()
        return keys
    }
}
