import ImageServer
import ImageServerNIO
import Pipeline
import PipelineSupport
import Variants

extension SettingForm {
    static func proxies() -> Self where Value == TrustedProxies {
        .list(
            { (texts) throws(TrustedProxies.Malformed) in try TrustedProxies(texts) },
            problem: { "`\($0.text)` is not an address, a CIDR block or `unix`" }, write: \.texts)
    }

    static func origins() -> Self where Value == [String] {
        .list(of: .text.checked(by: { (text) throws(InvalidSetting) in try CrossOriginRule([text]) }))
    }

    static func outputs() -> Self where Value == OutputDefaults {
        .list(
            { (texts) throws(RecipeError) in try OutputDefaults(texts) }, problem: \.description, write: \.texts)
    }

    /// Route names. Nil is written as all routes.
    static func routes() -> Self where Value == Set<ImageRoute>? {
        SettingForm<Set<ImageRoute>>.words().converted(back: { $0 ?? Set(ImageRoute.allCases) }) {
            (given, routes) throws(SettingErrors) in
            if routes.isEmpty { throw given.bad("must contain at least one of variant, original, info") }
            return routes
        }
    }

    /// Grammars by name. The grammars check the members, and paths of files are relative to the settings file.
    static func grammars() -> Self where Value == [String: GrammarValue] {
        .map(.names(.map([])), [:]) { (given, grammars) throws(SettingErrors) in
            try given.eachMember { (name, member) throws(SettingErrors) in
                var value = member.value
                if case .object(var members) = value {
                    for index in members.indices where Grammars.namesFile(members[index].name, of: name) {
                        guard case .string(let path) = members[index].value else { continue }
                        members[index].value = .string(given.resolved(path))
                    }
                    value = .object(members)
                }
                grammars[name] = GrammarValue(value)
            }
        }
    }

    static func addedFields() -> Self where Value == [String: String] {
        .texts().checked(by: AddedFields.init)
    }

    static func clientFreshness() -> Self where Value == FreshnessSetting {
        .map(
            FreshnessSetting(),
            SettingForm<ClientFreshness>.parts.map { SettingPart($0, within: \.own) }
                + [SettingPart("presets", \.presets, .named(.rule))],
            finish: { (given, freshness) throws(SettingErrors) in try given.check(freshness.rule) })
    }

    /// Page patterns. An empty list means nil.
    static func referrers() -> Self where Value == [String]? {
        SettingForm<[String]>.list(
            of: .text.checked(by: { (text) throws(InvalidSetting) in try ReferrerRule([text]) })
        ).converted(back: { $0 ?? [] }) { $1.isEmpty ? nil : $1 }
    }

    /// Requests per second. 0 means nil.
    static func rate() -> Self where Value == RateLimit? {
        SettingForm<Double>.number(0...1e9).converted(back: { $0?.rate ?? 0 }) { $1 > 0 ? RateLimit(rate: $1) : nil }
    }

    /// Names of recipe steps. An empty list means nil.
    static func steps() -> Self where Value == Set<String>? {
        let names = Catalog.listedNames
        return SettingForm<[String]>.list(
            of: .text.checked {
                names.contains($0) ? nil : "`\($0)` is not a recipe step" + NearestName.hint($0, in: names)
            }
        ).converted(back: { $0?.sorted() ?? [] }) { $1.isEmpty ? nil : Set($1) }
    }

    static func methods() -> Self where Value == [String] {
        .list(of: .text.checked { ForwardedMethods.fault(of: $0, isKnown: HTTPServer.reads(method:)) })
    }

    /// Recipe steps that may follow a preset.
    static func suffixes() -> Self where Value == [String] {
        .list(
            of: .text.checked { step in
                // `dpr` is an error unless a step that it changes follows.
                do throws(RecipeError) { _ = try Recipe(step.hasPrefix("dpr") ? step + ",thumbnail:64" : step) } catch {
                    return "`\(step)`: \(error.description)"
                }
                return nil
            })
    }

    /// A path without a trailing slash, or an empty string.
    static func mountPoint() -> Self where Value == String {
        text.checked { ServerConfiguration.fault(ofMountPoint: $0) }
    }

    /// The status of responses with the fallback picture. 0 means the status of the error.
    static func fallbackStatus() -> Self where Value == Int {
        integer(0...599).checked { $0 == 0 ? nil : FallbackPicture.fault(ofStatus: $0) }
    }

    /// Edge lengths in pixels, or true for the usual lengths.
    static func sizeSteps() -> Self where Value == [Int] {
        Self(
            kind: .either([.bool, .integers(1...8192)]),
            read: { given in
                switch given.value {
                case .bool(true): return RecipeRules.usualSizes
                case .list(let values): return values.compactMap { if case .int(let edge) = $0 { edge } else { nil } }
                default: return []
                }
            },
            write: { edges in
                if edges.isEmpty { return .bool(false) }
                return edges == RecipeRules.usualSizes ? .bool(true) : .list(edges.map { .int($0) })
            })
    }
}

/// The value of the `server.cacheControl` setting.
struct FreshnessSetting: Hashable, Sendable {
    var rule: ClientFreshness?
    var presets: [String: ClientFreshness] = [:]

    fileprivate var own: ClientFreshness {
        get { rule ?? .unset }
        set { rule = newValue }
    }
}

extension ClientFreshness {
    /// A rule with an unset `maxAge`.
    fileprivate static let unset = ClientFreshness(maxAge: .seconds(-1))
}

extension SettingForm where Value == ClientFreshness {
    fileprivate static var parts: [SettingPart<Value>] {
        let seconds = SettingForm<Int>.integer(0...Int.max).converted(back: { Int($0.components.seconds) }) {
            Duration.seconds($1)
        }
        return [
            SettingPart("maxAge", \.maxAge, seconds),
            SettingPart("staleWhileRevalidate", \.staleWhileRevalidate, seconds),
            SettingPart("immutable", \.isImmutable, .bool),
        ]
    }

    fileprivate static var rule: Self {
        .map(.unset, parts) { (given, rule) throws(SettingErrors) in try given.check(rule) }
    }
}

extension GivenSetting {
    fileprivate func check(_ rule: ClientFreshness?) throws(SettingErrors) {
        if let rule, rule.maxAge < .zero { throw bad("`maxAge` is missing; set it to a number of seconds") }
    }
}
