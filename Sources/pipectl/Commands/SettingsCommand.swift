import ArgumentParser
import PipelineSupport

struct SettingsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "settings",
        abstract:
            "List all settings with accepted values, default, current value and its origin, and the reason for the default.",
        discussion: """
            Flags override the environment, which overrides the --config file, which overrides the default.

            Examples:
              pipectl settings
              pipectl settings --config pipectl.yaml --json
            """)

    @Flag(help: "Print JSON Lines, one object per setting.")
    var json = false
    @OptionGroup var common: CommonOptions

    func run() throws {
        let settings = common.collectedSettings()
        try settings.errors.check()
        for setting in SettingCatalog.all {
            print(json ? Self.json(setting, settings) : Self.text(setting, settings))
        }
    }

    /// Returns the current value as JSON. A secret that is set is shown as "(secret)".
    private static func value(_ setting: Setting, _ settings: Settings) -> SettingValue {
        setting.isSecret && settings.isSet(setting.key) ? .string("(secret)") : settings.value(setting.key)
    }

    private static func text(_ setting: Setting, _ settings: Settings) -> String {
        let origin = settings.origin(setting.key)
        let isSet = settings.isSet(setting.key)
        let source = isSet ? "\(origin); default \(setting.fallback.json)" : "default"
        let differingDefault = setting.differingDefault.map { "\n    \($0.text)" } ?? ""
        return TextTable.plain("\(setting.key) = \(value(setting, settings).json)") + "  (\(source))\n"
            + "    \(setting.kind.expectation): \(setting.reason)\(differingDefault)"
    }

    private static func json(_ setting: Setting, _ settings: Settings) -> String {
        JSONText([
            "name": setting.key, "type": setting.kind.expectation, "default": setting.fallback,
            "value": value(setting, settings), "origin": settings.origin(setting.key).description,
            "reason": setting.reason, "otherDefault": setting.differingDefault?.text,
        ]).json
    }
}
