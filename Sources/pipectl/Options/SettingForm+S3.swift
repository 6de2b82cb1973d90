import ImageServer
import Pipeline

extension SettingForm where Value == S3Configuration {
    /// Written without credentials.
    static var s3: Self {
        Self(
            kind: .map, read: { (given) throws(SettingErrors) in try given.s3() },
            write: { s3 in
                var members = shown(s3.store)
                if s3.asksInstance { members.append(SettingMember(name: "instance", value: .bool(true))) }
                let buckets = s3.buckets.sorted { $0.key < $1.key }
                    .map { SettingMember(name: $0.key, value: .object(shown($0.value))) }
                if !buckets.isEmpty { members.append(SettingMember(name: "buckets", value: .object(buckets))) }
                return .object(members)
            })
    }

    fileprivate static func shown(_ store: S3Configuration.Store) -> [SettingMember] {
        let credentials: (String, SettingValue)? =
            switch store.credentials {
            case nil: nil
            case .anonymous: ("anonymous", .bool(true))
            case .key: ("accessKey", .null)
            case .profile(let name): ("profile", .string(name))
            }
        let members: [(String, SettingValue)?] = [
            store.endpoint.map { ("endpoint", .string($0)) }, store.region.map { ("region", .string($0)) },
            store.fields.map { fields in
                ("headers", .object(fields.map { SettingMember(name: $0.name, value: .null) }))
            },
            store.pathStyle.map { ("pathStyle", .bool($0)) }, store.maxAge.map { ("maxAge", .int($0)) }, credentials,
        ]
        return members.compactMap { $0 }.map { SettingMember(name: $0.0, value: $0.1) }
    }
}

extension SettingForm where Value == RemoteConfiguration {
    /// The bucket behind the caches; no bucket for none. Written without credentials.
    static var bucket: Self {
        Self(
            kind: .map, read: { (given) throws(SettingErrors) in try given.bucket() },
            write: { remote in
                if remote.bucket.isEmpty { return .object([]) }
                var members = [SettingMember(name: "bucket", value: .string(remote.bucket))]
                if !remote.prefix.isEmpty {
                    members.append(SettingMember(name: "prefix", value: .string(remote.prefix)))
                }
                members += SettingForm<S3Configuration>.shown(remote.store)
                if remote.asksInstance { members.append(SettingMember(name: "instance", value: .bool(true))) }
                return .object(members)
            })
    }
}

extension GivenSetting {
    private static let members = [
        "endpoint", "region", "pathStyle", "maxAge", "accessKey", "secretKey", "secretKeyFile", "sessionToken",
        "profile",
        "anonymous", "instance", "headers", "buckets",
    ]

    fileprivate func bucket() throws(SettingErrors) -> RemoteConfiguration {
        var remote = RemoteConfiguration(bucket: "")
        var own: [SettingMember] = []
        try eachMember { (member) throws(SettingErrors) in
            switch (member.name, member.value) {
            case ("instance", .bool(let isAsked)): remote.asksInstance = isAsked
            case ("bucket", .string(let name)): remote.bucket = name
            case ("prefix", .string(let prefix)): remote.prefix = prefix
            case ("maxAge", _), ("buckets", _): throw bad("`\(member.name)` has no meaning for a bucket of caches")
            case ("instance", _), ("bucket", _), ("prefix", _):
                throw bad(
                    "`\(member.name)` is \(member.value.kindName); expected "
                        + (member.name == "instance" ? "true or false" : "text"))
            default: own.append(member)
            }
        }
        remote.store = try store(own, "")
        if !own.isEmpty || remote != RemoteConfiguration(bucket: ""), !remote.hasPlace {
            throw bad(
                "there is no bucket of this name and prefix; expected bucket: NAME and, if it is shared, prefix: FOLDER"
            )
        }
        return remote
    }

    fileprivate func s3() throws(SettingErrors) -> S3Configuration {
        var s3 = S3Configuration()
        var own: [SettingMember] = []
        try eachMember { (member) throws(SettingErrors) in
            switch (member.name, member.value) {
            case ("instance", .bool(let isAsked)): s3.asksInstance = isAsked
            case ("buckets", .object(let buckets)):
                for bucket in buckets {
                    guard case .object(let members) = bucket.value else {
                        throw bad("the bucket `\(bucket.name)` is \(bucket.value.kindName); expected a map")
                    }
                    s3.buckets[bucket.name.lowercased()] = try store(members, "buckets.\(bucket.name): ")
                }
            case ("instance", _), ("buckets", _):
                throw bad(
                    "`\(member.name)` is \(member.value.kindName); expected "
                        + (member.name == "buckets" ? "a map" : "true or false"))
            default: own.append(member)
            }
        }
        s3.store = try store(own, "")
        return s3
    }

    /// Parses what is said of one store. Some values are secrets, so no message contains any.
    private func store(_ members: [SettingMember], _ place: String) throws(SettingErrors) -> S3Configuration.Store {
        var store = S3Configuration.Store()
        var texts: [String: String] = [:]
        for member in members {
            switch (member.name, member.value) {
            case ("pathStyle", .bool(let isPath)): store.pathStyle = isPath
            case ("maxAge", .int(let seconds)) where seconds >= 0: store.maxAge = seconds
            case ("anonymous", .bool(true)): store.credentials = .anonymous
            case ("anonymous", .bool(false)): break
            case ("endpoint", .string(let text)) where S3Configuration.isEndpoint(text): store.endpoint = text
            case ("headers", .object(let members)): store.fields = try fields(members, "\(place)headers")
            case ("region", .string(let text)) where !text.isEmpty: store.region = text
            case ("accessKey", .string(let text)), ("secretKey", .string(let text)),
                ("sessionToken", .string(let text)),
                ("profile", .string(let text)), ("secretKeyFile", .string(let text)):
                texts[member.name] = text
            case (let name, _) where Self.members.contains(name):
                throw bad("\(place)`\(name)` is not what it should be; expected \(Self.expected(name))")
            default:
                throw bad(
                    "\(place)unknown member `\(member.name)`" + NearestName.hint(member.name, in: Self.members))
            }
        }
        if let file = texts["secretKeyFile"] { texts["secretKey"] = try secret(in: file, place) }
        switch (texts["accessKey"], texts["secretKey"], texts["profile"]) {
        case (let id?, let secret?, nil):
            store.credentials = .key(id: id, secret: secret, token: texts["sessionToken"])
        case (nil, nil, let profile?): store.credentials = .profile(profile)
        case (nil, nil, nil): break
        default: throw bad("\(place)give both accessKey and secretKey (or secretKeyFile), or a profile")
        }
        return store
    }

    private func secret(in file: String, _ place: String) throws(SettingErrors) -> String {
        let path = resolved(file)
        do throws(FileError) { return String(try FileText.read(path, limit: 65_536).trimmingSpace()) } catch {
            throw bad("\(place)`secretKeyFile`: \(error.description)")
        }
    }

    private static func expected(_ name: String) -> String {
        switch name {
        case "pathStyle", "anonymous": "true or false"
        case "maxAge": "whole seconds"
        case "headers": "a map"
        case "endpoint": "https://HOST[:PORT], or http:// for a store of your own network"
        default: "text"
        }
    }
}
