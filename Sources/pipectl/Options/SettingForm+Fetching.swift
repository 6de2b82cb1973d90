import Glibc
import Pipeline
import PipelineSupport

extension SettingForm {
    static func pattern() -> Self where Value == HostPattern {
        .text(write: \.description) { (given, text) throws(SettingErrors) in
            do throws(InvalidSetting) { return try HostPattern(text) } catch { throw given.bad(error.message) }
        }
    }

    static func addresses() -> Self where Value == AddressRule {
        let list = Self.list(
            { texts throws(InvalidSetting) in try AddressRule(texts) }, problem: \.message, write: \.texts)
        return Self(
            kind: .either([.bool, .list]),
            read: { (given) throws(SettingErrors) in
                if case .bool(let areAll) = given.value { return areAll ? .all : .publicOnly }
                return try list.read(given)
            }, write: { $0.texts.isEmpty ? .bool($0 == .all) : list.write($0) })
    }

    /// The URL of a proxy, or an empty string if there is none. Messages do not contain the URL.
    static func proxy() -> Self where Value == FetchProxy {
        .text(write: \.description) { (given, text) throws(SettingErrors) in
            do throws(InvalidSetting) { return try FetchProxy(text) } catch { throw given.bad(error.message) }
        }
    }

    static func hosts() -> Self where Value == [HostOrigin: HostSettings] {
        .named(
            .host(),
            key: { (given, name) throws(SettingErrors) in
                do throws(InvalidSetting) { return try HostOrigin(name) } catch { throw given.bad(error.message) }
            },
            finish: { (given, hosts) throws(SettingErrors) in
                for (host, own) in hosts {
                    guard let alias = own.alias, alias == host || hosts[alias]?.alias != nil else { continue }
                    throw given.bad(
                        "\(host): aliasOf must not name another alias; name the origin that has the pictures")
                }
            })
    }

    fileprivate static func host() -> Self where Value == HostSettings {
        .map(
            HostSettings(),
            [
                SettingPart("headers", \.fields, .fields()), SettingPart("basic", \.authorization, .basic),
                SettingPart("bearer", \.authorization, .bearer), SettingPart("ca", \.authoritiesFile, .authorities()),
                SettingPart("insecure", \.isInsecure, .bool), SettingPart("trace", \.sendsTraceContext, .bool),
                SettingPart("freshness", \.freshness, .freshness()),
                SettingPart("ignoreQuery", \.ignoredQuery, .queryNames()), SettingPart("aliasOf", \.alias, .origin()),
            ],
            finish: { (given, _) throws(SettingErrors) in
                guard given.text("basic") == nil || given.text("bearer") == nil else {
                    throw given.bad("basic and bearer cannot be combined")
                }
            })
    }

    fileprivate static func freshness() -> Self where Value == HostFreshness {
        .map(
            HostFreshness(),
            [
                SettingPart("atLeast", \.atLeast, .integer(0...Int.max)),
                SettingPart("atMost", \.atMost, .integer(0...Int.max)), SettingPart("ignore", \.ignored, .words()),
            ])
    }

    fileprivate static func origin() -> Self where Value == HostOrigin {
        .text { (given, text) throws(SettingErrors) in
            do throws(InvalidSetting) { return try HostOrigin(text) } catch { throw given.bad(error.message) }
        }
    }

    /// The path of a readable PEM file.
    fileprivate static func authorities() -> Self where Value == String {
        .text { (given, text) throws(SettingErrors) in
            guard !text.isEmpty else { throw given.bad("must not be empty") }
            let path = given.resolved(text)
            guard access(path, R_OK) == 0 else { throw given.bad("\(path): \(String(cString: strerror(errno)))") }
            return path
        }
    }

    /// Names of query parameters, or the word `all`.
    fileprivate static func queryNames() -> Self where Value == [String] {
        Self(
            kind: .either([.choice(["all"]), .list]),
            read: { (given) throws(SettingErrors) in
                if given.text() != nil { return ["*"] }
                guard case .list(let values) = given.value, values.count == given.texts.count,
                    !given.texts.contains(where: { name in
                        name.isEmpty || name.contains { "&=#".contains($0) } || name.dropLast().contains("*")
                    })
                else { throw given.bad("must be `all` or a list of parameter names, which can end in `*`") }
                return given.texts
            }, write: { .list($0.map { .string($0) }) })
    }

    /// Request header fields by name.
    static func fields() -> Self where Value == [HeaderField] {
        .map(.names(.text), []) { (given, fields) throws(SettingErrors) in
            try given.eachMember { (name, member) throws(SettingErrors) in
                guard let text = SettingKind.text.accept(member.value).flatMap(String.init(json:)) else {
                    throw member.bad("expected text, not \(member.value.kindName)")
                }
                let field = HeaderField(name, text)
                guard HostSettings.mayHold(field) else {
                    throw member.bad("cannot be set as a header field, or its value contains a line break")
                }
                fields.append(field)
            }
        }
    }
}

extension SettingForm where Value == String {
    fileprivate static var bearer: Self { credentials { (_, text) in "Bearer " + text } }

    fileprivate static var basic: Self {
        credentials { (given, text) throws(SettingErrors) in
            guard let colon = text.firstIndex(of: ":") else { throw given.bad("is not USER:PASSWORD") }
            var settings = HostSettings()
            settings.authenticate(
                user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
            return settings.authorization ?? ""
        }
    }

    private static func credentials(
        _ read: @escaping @Sendable (GivenSetting, String) throws(SettingErrors) -> Value
    ) -> Self {
        .text { (given, text) throws(SettingErrors) in
            guard !text.isEmpty, HostSettings.mayHold(HeaderField("Authorization", text)) else {
                throw given.bad("must not be empty or contain a line break")
            }
            return try read(given, text)
        }
    }
}
