import ImageServer
import Variants

/// The keys that sign paths, from the settings `keys` and `keysFile`.
extension RunConfiguration {
    /// All keys, those of `keys` first. What cannot be read is an error for each line, without the key.
    func signingKeys(_ settings: Settings, _ errors: inout SettingErrors) -> [SigningKey] {
        guard let path = keysFile else { return keys }
        let text: String
        do throws(FileError) { text = try FileText.read(path, limit: 1 << 20) } catch {
            errors.add(settings.given("keysFile").bad(error.description))
            return keys
        }
        var all = keys
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
                bad("expected NAME: KEY, the key as hexadecimal digits")
                continue
            }
            let (name, hex) = (parts[0].trimmingSpace(), parts[1].trimmingSpace())
            guard !all.contains(where: { $0.id == name }) else {
                bad("the key `\(name)` is there twice")
                continue
            }
            do throws(SigningKey.Refusal) { all.append(try SigningKey(id: name, hex: hex)) } catch { bad(error.text) }
        }
        return all
    }
}

extension Settings {
    /// Checks that a server with these settings answers on a route, and makes the recipe.
    func checkSigned(_ route: ImageRoute, recipe text: String? = nil) throws {
        var errors = errors
        let configuration = configuration(
            serves: true,
            only: ["presets", "limits.steps", "recipes.", "sizes.", "server.routes", "masks", "overlays"], &errors)
        var site = configuration.site
        // Faulty presets are among the errors.
        site.presets = (try? configuration.recipePresets()) ?? .none
        configuration.fillRecipes(of: &site, self, &errors)
        try errors.check()
        guard site.openRoutes.contains(route) else {
            throw CommandFailure(.usage, "/\(route.rawValue) is closed by these settings (`server.routes`)")
        }
        // Without presets in these settings, a preset is the server's to know.
        guard let text, !text.contains("@") || !configuration.presets.isEmpty else { return }
        let recipe = try Recipe(usage: text, presets: site.presets)
        if let reason = site.recipes.refusal(of: recipe, text: text) {
            throw CommandFailure(.usage, "recipe `\(text)`: \(reason)")
        }
    }

    /// The keys, for commands that need nothing else.
    func signingKeys() throws(SettingErrors) -> [SigningKey] {
        var errors = errors
        let keys = configuration(serves: true, only: ["keys"], &errors).signingKeys(self, &errors)
        try errors.check()
        return keys
    }
}
