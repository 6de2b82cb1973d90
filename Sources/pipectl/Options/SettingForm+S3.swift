import PipelineSupport
import ImageServer
import Pipeline

extension SettingForm {
    static func s3() -> Self where Value == S3Configuration {
        .map(
            S3Configuration(),
            SettingForm<S3Configuration.Store>.parts.map { SettingPart($0, within: \.store) } + [
                SettingPart("instance", \.asksInstance, .bool),
                SettingPart("buckets", \.buckets, .named(.store, key: { $1.lowercased() })),
            ],
            finish: { (given, s3) throws(SettingErrors) in s3.store.credentials = try given.credentials() })
    }

    /// The bucket that serves as the remote cache tier, or an empty map if no bucket is used.
    static func bucket() -> Self where Value == RemoteConfiguration {
        .map(
            RemoteConfiguration(bucket: ""),
            [SettingPart("bucket", \.bucket, .text), SettingPart("prefix", \.prefix, .text)]
                + SettingForm<S3Configuration.Store>.parts.filter { $0.name != "maxAge" }.map {
                    SettingPart($0, within: \.store)
                } + [SettingPart("instance", \.asksInstance, .bool)],
            finish: { (given, remote) throws(SettingErrors) in
                remote.store.credentials = try given.credentials()
                // In a file generated from a template, all values may be empty.
                guard remote.bucket.isEmpty && remote.prefix.isEmpty || remote.hasLocation else {
                    throw given.bad(
                        "this is not a valid bucket and prefix; expected bucket: NAME and, for part of a bucket, prefix: "
                            + "FOLDER")
                }
            })
    }

    fileprivate static func endpoint() -> Self where Value == String {
        text.checked {
            S3Configuration.isEndpoint($0)
                ? nil : "expected https://HOST[:PORT], or http:// for a store in your own network"
        }
    }
}

extension SettingForm where Value == S3Configuration.Store {
    fileprivate static var store: Self {
        .map(
            Value(), parts,
            finish: { (given, store) throws(SettingErrors) in store.credentials = try given.credentials() })
    }

    fileprivate static var parts: [SettingPart<Value>] {
        [
            SettingPart("endpoint", \.endpoint, .endpoint()), SettingPart("region", \.region, .filledText),
            SettingPart("headers", \.fields, .fields()), SettingPart("pathStyle", \.pathStyle, .bool),
            SettingPart("maxAge", \.maxAge, .wholeSeconds), SettingPart("anonymous", \.isAnonymous, .bool),
        ] + ["accessKey", "secretKey", "secretKeyFile", "sessionToken", "profile"].map { SettingPart(text: $0) }
    }
}

extension S3Configuration.Store {
    fileprivate var isAnonymous: Bool {
        get { credentials == .anonymous }
        set { credentials = newValue ? .anonymous : nil }
    }
}

extension GivenSetting {
    /// Returns the credentials specified by the members of a store.
    fileprivate func credentials() throws(SettingErrors) -> S3Credentials? {
        let secret = if let file = text("secretKeyFile") { try secret(in: file) } else { text("secretKey") }
        switch (text("accessKey"), secret, text("profile")) {
        case (let id?, let secret?, nil): return .key(id: id, secret: secret, token: text("sessionToken"))
        case (nil, nil, let profile?): return .profile(profile)
        case (nil, nil, nil): return value["anonymous"] == .bool(true) ? .anonymous : nil
        default: throw bad("set both accessKey and secretKey (or secretKeyFile), or only profile")
        }
    }

    private func secret(in file: String) throws(SettingErrors) -> String {
        do throws(FileError) { return String(try FileText.read(resolved(file), limit: 65_536).trimmingSpace()) } catch {
            throw bad("secretKeyFile: \(error.description)")
        }
    }
}
