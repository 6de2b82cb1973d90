import Variants
import PipelineSupport
import Glibc
import ImageServer
import ImageServerNIO

extension SettingForm where Value == TLSFiles? {
    /// A map of two paths; both files must be there.
    static var tlsFiles: Self {
        Self(
            kind: .map,
            read: { (given) throws(SettingErrors) in
                guard given.value != .object([]) else { return nil }
                var paths: [String: String] = [:]
                try given.eachMember { (member) throws(SettingErrors) in
                    guard ["certificate", "key"].contains(member.name) else {
                        throw given.unknown(member.name, of: ["certificate", "key"])
                    }
                    guard case .string(let path) = member.value, !path.isEmpty else {
                        throw given.bad("`\(member.name)` is \(member.value.kindName); expected the path of a PEM file")
                    }
                    let resolved = given.resolved(path)
                    guard access(resolved, R_OK) == 0 else {
                        throw given.bad("`\(member.name)`: \(resolved): \(String(cString: strerror(errno)))")
                    }
                    paths[member.name] = resolved
                }
                guard let certificate = paths["certificate"], let key = paths["key"] else {
                    throw given.bad("both `certificate` and `key` are needed")
                }
                return TLSFiles(certificate: certificate, key: key)
            },
            write: { files in
                .object(
                    files.map {
                        [
                            SettingMember(name: "certificate", value: .string($0.certificate)),
                            SettingMember(name: "key", value: .string($0.key)),
                        ]
                    } ?? [])
            })
    }
}

extension SettingForm where Value == TrustedProxies {
    static var proxies: Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                func read(_ texts: [String]) throws(SettingErrors) -> TrustedProxies {
                    do throws(TrustedProxies.Malformed) { return try TrustedProxies(texts) } catch {
                        throw given.bad("`\(error.text)` is not an address, a CIDR block or `unix`")
                    }
                }
                _ = try given.each { text throws(SettingErrors) in try read([text]) }
                return try read(given.texts)
            }, write: { .list($0.texts.map { .string($0) }) })
    }
}

extension SettingForm where Value == CrossOriginRule {
    static var origins: Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                func read(_ texts: [String]) throws(SettingErrors) -> CrossOriginRule {
                    do throws(CrossOriginRule.Malformed) { return try CrossOriginRule(texts) } catch {
                        throw given.bad("`\(error.text)` is not an origin such as https://example.org, nor *")
                    }
                }
                _ = try given.each { text throws(SettingErrors) in try read([text]) }
                return try read(given.texts)
            }, write: { .list($0.texts.map { .string($0) }) })
    }
}

extension SettingForm where Value == Set<ImageRoute>? {
    /// Routes by name. Nil is written as all routes.
    static var routes: Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                let routes = given.texts.compactMap(ImageRoute.init)
                if !routes.isEmpty, routes.count == given.texts.count { return Set(routes) }
                throw given.bad("takes at least one of variant, original and info, not \(given.value.json)")
            },
            write: { routes in
                .list(ImageRoute.allCases.filter { routes?.contains($0) != false }.map { .string($0.rawValue) })
            })
    }
}

extension SettingForm where Value == AddedFields {
    static var addedFields: Self {
        let texts = SettingForm<[String: String]>.texts
        return Self(
            kind: .map,
            read: { (given) throws(SettingErrors) in
                let fields = try texts.read(given)
                do throws(AddedFields.Refusal) { return try AddedFields(fields) } catch { throw given.bad(error.text) }
            }, write: { texts.write($0.texts) })
    }
}

extension SettingForm where Value == OutputDefaults {
    static var outputs: Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                do throws(RecipeError) { return try OutputDefaults(given.texts) } catch {
                    throw given.bad(error.description)
                }
            }, write: { .list($0.texts.map { .string($0) }) })
    }
}

extension SettingForm where Value == ClientFreshness {
    static var clientFreshness: Self {
        Self(
            kind: .map, read: { (given) throws(SettingErrors) in try given.clientFreshness() },
            write: { freshness in
                let presets = freshness.presets.sorted { $0.key < $1.key }
                    .map { SettingMember(name: $0.key, value: .object(shown($0.value))) }
                return .object(
                    (freshness.rule.map(shown) ?? [])
                        + (presets.isEmpty ? [] : [SettingMember(name: "presets", value: .object(presets))]))
            })
    }

    private static func shown(_ rule: ClientFreshness.Rule) -> [SettingMember] {
        [
            SettingMember(name: "maxAge", value: .int(rule.maxAge)),
            SettingMember(name: "staleWhileRevalidate", value: .int(rule.staleWhileRevalidate)),
            SettingMember(name: "immutable", value: .bool(rule.isImmutable)),
        ]
    }
}

extension GivenSetting {
    fileprivate func clientFreshness() throws(SettingErrors) -> ClientFreshness {
        var (freshness, own): (ClientFreshness, [SettingMember]) = (ClientFreshness(), [])
        try eachMember { (member) throws(SettingErrors) in
            guard member.name == "presets", case .object(let named) = member.value else { return own.append(member) }
            for preset in named { freshness.presets[preset.name] = try rule(preset.value, "presets.\(preset.name): ") }
        }
        if !own.isEmpty { freshness.rule = try rule(.object(own), "") }
        return freshness
    }

    private func rule(_ value: SettingValue, _ place: String) throws(SettingErrors) -> ClientFreshness.Rule {
        var rule = ClientFreshness.Rule(maxAge: -1)
        guard case .object(let members) = value else { throw bad("\(place)expected a map") }
        for member in members {
            switch (member.name, member.value) {
            case ("maxAge", .int(let seconds)) where seconds >= 0: rule.maxAge = seconds
            case ("staleWhileRevalidate", .int(let seconds)) where seconds >= 0: rule.staleWhileRevalidate = seconds
            case ("immutable", .bool(let isImmutable)): rule.isImmutable = isImmutable
            default:
                throw bad("\(place)`\(member.name)`: expected maxAge, staleWhileRevalidate, immutable, presets")
            }
        }
        guard rule.maxAge >= 0 else { throw bad("\(place)`maxAge` is needed") }
        return rule
    }
}
