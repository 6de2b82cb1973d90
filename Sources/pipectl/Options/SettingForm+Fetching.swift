import PipelineSupport
import Glibc
import Pipeline

extension SettingForm where Value == [HostPattern] {
    static var patterns: Self {
        Self(
            kind: .list,
            read: { (given) throws(SettingErrors) in
                try given.each { text throws(SettingErrors) in
                    do throws(HostPatternError) { return try HostPattern(text) } catch {
                        throw given.bad(error.message)
                    }
                }
            }, write: { .list($0.map { .string($0.description) }) })
    }
}

extension SettingForm where Value == AddressRule {
    static var addresses: Self {
        Self(
            kind: .either([.bool, .list]),
            read: { (given) throws(SettingErrors) in
                if case .bool(let areAll) = given.value { return areAll ? .all : .none }
                return .list(
                    try given.each { text throws(SettingErrors) in
                        if let rule = AddressRule.Entry(text) { return rule }
                        throw given.bad("`\(text)` is not an address or CIDR with an optional port")
                    })
            },
            write: { rule in
                guard case .list(let rules) = rule else { return .bool(rule == .all) }
                return .list(rules.map { .string($0.description) })
            })
    }
}

extension SettingForm where Value == FetchProxy? {
    /// The URL of a proxy; an empty text for none. No message contains it.
    static var proxy: Self {
        Self(
            kind: .text,
            read: { (given) throws(SettingErrors) in
                guard case .string(let text) = given.value, !text.isEmpty else { return nil }
                guard let proxy = FetchProxy(text) else {
                    throw given.bad("expected http://[USER:PASSWORD@]HOST[:PORT], user and password percent-encoded")
                }
                return proxy
            }, write: { .string($0?.description ?? "") })
    }
}

extension SettingForm where Value == BreakerConfiguration? {
    static var breaker: Self {
        Self(
            kind: .either([.bool, .map]), read: { (given) throws(SettingErrors) in try given.breaker() },
            write: { breaker in
                guard let breaker, breaker != BreakerConfiguration() else { return .bool(breaker != nil) }
                return .object([
                    SettingMember(name: "failures", value: .int(breaker.failures)),
                    SettingMember(name: "seconds", value: .double(breaker.seconds)),
                ])
            })
    }
}

extension SettingForm where Value == [HostOrigin: HostSettings] {
    /// Written without what each host holds, which is secret.
    static var hosts: Self {
        Self(
            kind: .map, read: { (given) throws(SettingErrors) in try given.hosts() },
            write: { .object($0.keys.map(\.description).sorted().map { SettingMember(name: $0, value: .null) }) })
    }
}

extension GivenSetting {
    fileprivate func breaker() throws(SettingErrors) -> BreakerConfiguration? {
        if value == .bool(false) { return nil }
        var breaker = BreakerConfiguration()
        try eachMember { (member) throws(SettingErrors) in
            switch (member.name, member.value) {
            case ("failures", .int(let count)) where count >= 1: breaker.failures = count
            case ("seconds", .int(let seconds)) where seconds > 0: breaker.seconds = Double(seconds)
            case ("seconds", .double(let seconds)) where seconds > 0: breaker.seconds = seconds
            case ("failures", _), ("seconds", _):
                throw bad("`\(member.name)` is \(member.value.json); expected a number above zero")
            default: throw unknown(member.name, of: ["failures", "seconds"])
            }
        }
        return breaker
    }

    fileprivate func hosts() throws(SettingErrors) -> [HostOrigin: HostSettings] {
        var hosts: [HostOrigin: HostSettings] = [:]
        try eachMember { (member) throws(SettingErrors) in
            let host: HostOrigin
            do throws(HostPatternError) { host = try HostOrigin(member.name) } catch { throw bad(error.message) }
            guard hosts[host] == nil else { throw bad("\(host) appears twice") }
            hosts[host] = try settings(of: host, member.value)
        }
        for (host, own) in hosts {
            if let alias = own.alias, alias == host || hosts[alias]?.alias != nil {
                throw bad(host, "`aliasOf` names an origin that is an alias itself; name the one that has the pictures")
            }
        }
        return hosts
    }

    /// Parses one entry of `hosts`. Its values are secrets, so no message contains them.
    private func settings(of host: HostOrigin, _ value: SettingValue) throws(SettingErrors) -> HostSettings {
        guard case .object(let members) = value else {
            throw bad(
                host, "is \(value.kindName); expected a map of " + Self.hostMembers.joined(separator: ", "))
        }
        var settings = HostSettings()
        var errors = SettingErrors()
        for member in members {
            errors.collect { () throws(SettingErrors) in try fill(&settings, of: host, member) }
        }
        try errors.check()
        return settings
    }

    private static let hostMembers = [
        "headers", "basic", "bearer", "ca", "insecure", "trace", "freshness", "ignoreQuery", "aliasOf",
    ]

    private func fill(
        _ settings: inout HostSettings, of host: HostOrigin, _ member: SettingMember
    ) throws(SettingErrors) {
        switch (member.name, member.value) {
        case ("headers", .object(let fields)): settings.fields = try self.fields(fields, "\(host)")
        case ("basic", .string(let text)), ("bearer", .string(let text)):
            guard settings.credentials == nil else { throw bad(host, "has both basic and bearer, or one twice") }
            settings.credentials = try credentials(member.name, text, host)
        case ("ca", .string):
            settings.authoritiesFile = try authoritiesFile(member.value, host)
        case ("insecure", .bool(let isInsecure)): settings.isInsecure = isInsecure
        case ("trace", .bool(let isSent)): settings.sendsTraceContext = isSent
        case ("ignoreQuery", .string("all")): settings.ignoredQuery = ["*"]
        case ("ignoreQuery", .list(let names)):
            settings.ignoredQuery = try names.map { (name) throws(SettingErrors) in
                guard case .string(let name) = name, !name.isEmpty, !name.contains(where: { "&=#".contains($0) }),
                    !name.dropLast().contains("*")
                else {
                    throw bad(host, "`ignoreQuery` has names of query fields, with `*` at the end or not, or is `all`")
                }
                return name
            }
        case ("aliasOf", .string(let text)):
            do throws(HostPatternError) { settings.alias = try HostOrigin(text) } catch {
                throw bad(host, error.message)
            }
        case ("freshness", .object(let members)): settings.freshness = try freshness(members, host)
        case ("headers", _), ("basic", _), ("bearer", _), ("ca", _), ("insecure", _), ("trace", _), ("freshness", _),
            ("ignoreQuery", _), ("aliasOf", _):
            let flag = "true or false"
            let kinds = [
                "headers": "a map", "freshness": "a map", "insecure": flag, "trace": flag,
                "ignoreQuery": "a list or `all`",
            ]
            throw bad(
                host, "`\(member.name)` is \(member.value.kindName); expected \(kinds[member.name] ?? "text")")
        default:
            throw unknown(member.name, of: Self.hostMembers)
        }
    }

    private func freshness(_ members: [SettingMember], _ host: HostOrigin) throws(SettingErrors) -> HostFreshness {
        var freshness = HostFreshness()
        for member in members {
            switch (member.name, member.value) {
            case ("atLeast", .int(let seconds)) where seconds >= 0: freshness.atLeast = seconds
            case ("atMost", .int(let seconds)) where seconds >= 0: freshness.atMost = seconds
            case ("ignore", .list(let names)):
                let known = HostFreshness.Directive.allCases.filter { names.contains(.string($0.rawValue)) }
                guard known.count == names.count else { fallthrough }
                freshness.ignored = Set(known)
            default:
                throw bad(host, "`freshness` has atLeast, atMost (seconds) and ignore (no-store, private, no-cache)")
            }
        }
        return freshness
    }

    /// - Parameter owner: what the fields are sent to, for messages.
    func fields(_ members: [SettingMember], _ owner: String) throws(SettingErrors) -> [HeaderField] {
        var fields: [HeaderField] = []
        for member in members {
            let text: String
            switch member.value {
            case .string(let given): text = given
            case .int(let number): text = String(number)
            default: throw bad("\(owner): the header `\(member.name)` is \(member.value.kindName); expected text")
            }
            let field = HeaderField(member.name, text)
            guard HostSettings.mayHold(field) else {
                throw bad(
                    "\(owner): `\(member.name)` is not a header that can be set, or its value contains a line break")
            }
            fields.append(field)
        }
        return fields
    }

    private func credentials(
        _ kind: String, _ text: String, _ host: HostOrigin
    ) throws(SettingErrors) -> HostSettings.Credentials {
        guard !text.isEmpty, HostSettings.mayHold(HeaderField("Authorization", text)) else {
            throw bad(host, "`\(kind)` is empty or contains a line break")
        }
        guard kind == "basic" else { return .bearer(text) }
        guard let colon = text.firstIndex(of: ":") else { throw bad(host, "`basic` is not USER:PASSWORD") }
        return .basic(user: String(text[..<colon]), password: String(text[text.index(after: colon)...]))
    }

    private func authoritiesFile(_ value: SettingValue, _ host: HostOrigin) throws(SettingErrors) -> String {
        guard case .string(let written) = value, !written.isEmpty else { throw bad(host, "`ca` is empty") }
        let path = resolved(written)
        guard access(path, R_OK) == 0 else {
            throw bad(host, "`ca`: \(path): \(String(cString: strerror(errno)))")
        }
        return path
    }

    private func bad(_ host: HostOrigin, _ problem: String) -> SettingErrors { bad("\(host): \(problem)") }

    func unknown(_ name: String, of names: [String]) -> SettingErrors {
        bad("unknown member `\(name)`" + NearestName.hint(name, in: names))
    }
}
