import PipelineSupport
import Variants

/// The parsed and validated settings of a `ServerConfiguration`.
final class SiteRules: Sendable {
    let baseURLs: BaseURLs
    let adminToken: AdminToken?
    let presets: RecipePresets
    let forwarded: ForwardedFields
    let methods: ForwardedMethods
    let referrers: ReferrerRule
    let crossOrigin: CrossOriginRule
    let fields: AddedFields
    let fallback: FallbackPicture?

    /// Parses the settings and opens the folders among the base URLs. Folders stay open as long as the value exists.
    ///
    /// - Throws: if a setting is invalid. The error names the first such setting.
    init(_ settings: ServerConfiguration, presets: RecipePresets) throws(InvalidSetting) {
        self.presets = settings.presets ?? presets
        forwarded = ForwardedFields(settings.forwardedFields)
        methods = ForwardedMethods(settings.forwardedMethods, fields: forwarded)
        baseURLs = try Self.checked(
            "baseURLs",
            BaseURLs(settings.baseURLs, followsLinks: settings.followsFolderLinks, defaultName: settings.defaultBase))
        adminToken = try Self.checked("adminToken", settings.adminToken.map(AdminToken.init))
        referrers = try Self.checked("referrers", ReferrerRule(settings.referrers))
        crossOrigin = try Self.checked("crossOrigin", CrossOriginRule(settings.crossOrigin))
        fields = try Self.checked("fields", AddedFields(settings.fields))
        fallback = try Self.checked(
            "fallback",
            settings.fallback.map { (bytes) throws(InvalidSetting) in
                try FallbackPicture(bytes, status: settings.fallbackStatus)
            })
        if let fault = ServerConfiguration.fault(ofMountPoint: settings.mountPoint) {
            throw InvalidSetting("`mountPoint`: " + fault)
        }
        guard settings.recipes.sizes.allSatisfy(SizeSteps.range.contains) else {
            throw InvalidSetting("`recipes.sizes`: a size must be between 1 and \(SizeSteps.range.upperBound) pixels")
        }
    }

    private static func checked<Value>(
        _ setting: String, _ value: @autoclosure () throws(InvalidSetting) -> Value
    ) throws(InvalidSetting) -> Value {
        do throws(InvalidSetting) { return try value() } catch {
            throw InvalidSetting("`\(setting)`: \(error.message)")
        }
    }
}

extension ServerConfiguration {
    /// Returns the reason why a mount point is invalid, or nil if it is valid.
    package static func fault(ofMountPoint path: String) -> String? {
        path.isEmpty || path.hasPrefix("/") && !path.hasSuffix("/") && !path.contains(where: "?# ".contains)
            ? nil : "must be a path that begins with a slash and does not end in one, such as /images"
    }
}
