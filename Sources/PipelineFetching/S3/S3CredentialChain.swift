import Glibc
import HTTPCaching
import PipelineSupport
import Synchronization

/// Finds credentials in the same places as Amazon's own tools: the environment, a profile in the shared files, the
/// container's endpoint and the instance's endpoint. Credentials that expire are renewed five minutes before they
/// expire.
actor S3CredentialChain {
    private struct Found {
        var signature: RequestSignature?
        /// The expiry in Unix seconds, or nil if the credentials do not expire. Such credentials are read again after a
        /// while, because files change.
        var ends: Double?
        var foundAt: Double
    }

    private let base: any Transport
    private let environment: @Sendable (String) -> String?
    private let asksInstance: Bool
    private var found: [String: Found] = [:]
    private var search: [String: Task<Found, any Error>] = [:]

    /// The region from the environment.
    nonisolated let region: String

    init(_ base: any Transport, _ environment: @escaping @Sendable (String) -> String?, asksInstance: Bool) {
        self.base = base
        self.environment = environment
        self.asksInstance = asksInstance
        region = environment("AWS_REGION") ?? environment("AWS_DEFAULT_REGION") ?? "us-east-1"
    }

    /// Returns the data for a signature, or nil if there are no credentials, as for public buckets.
    func signature(_ given: S3Credentials?, region: String) async throws(FetchError) -> RequestSignature? {
        switch given {
        case .anonymous: return nil
        case .key(let id, let secret, let token):
            return RequestSignature(region: region, keyID: id, secret: secret, token: token)
        case .profile(let name): return try await current(name).map { Self.with(region, $0) }
        case nil: return try await current("").map { Self.with(region, $0) }
        }
    }

    /// Looks for credentials again after a store refused the current ones. Returns nil if they have not changed.
    func renewed(_ refused: RequestSignature, _ given: S3Credentials?) async throws(FetchError) -> RequestSignature? {
        let profile: String
        switch given {
        case .anonymous, .key: return nil
        case .profile(let name): profile = name
        case nil: profile = ""
        }
        // Another request may have renewed them in the meantime.
        if found[profile]?.signature?.keyID == refused.keyID { found[profile] = nil }
        let fresh = try await signature(given, region: refused.region)
        return fresh?.keyID == refused.keyID && fresh?.token == refused.token ? nil : fresh
    }

    private static func with(_ region: String, _ signature: RequestSignature) -> RequestSignature {
        var signature = signature
        signature.region = region
        return signature
    }

    private func current(_ profile: String) async throws(FetchError) -> RequestSignature? {
        let now = SystemClock.unix.seconds
        if let known = found[profile], now < (known.ends.map { $0 - 300 } ?? known.foundAt + 60) {
            return known.signature
        }
        // All waiting requests share one search.
        let task = search[profile] ?? Task { try await findCredentials(profile) }
        search[profile] = task
        let result = await task.result
        search[profile] = nil
        do {
            let fresh = try result.get()
            found[profile] = fresh
            return fresh.signature
        } catch {
            // The known credentials may still work.
            if let known = found[profile], now < known.ends ?? .infinity { return known.signature }
            throw error as? FetchError ?? FetchError(.transport, "credentials of the store: \(error)")
        }
    }

    private func findCredentials(_ profile: String) async throws -> Found {
        let now = SystemClock.unix.seconds
        var result = Found(foundAt: now)
        if profile.isEmpty, let id = environment("AWS_ACCESS_KEY_ID"), let secret = environment("AWS_SECRET_ACCESS_KEY")
        {
            result.signature = RequestSignature(
                region: "", keyID: id, secret: secret, token: environment("AWS_SESSION_TOKEN"))
            return result
        }
        let name = profile.isEmpty ? environment("AWS_PROFILE") : profile
        if let own = inSharedFiles(name ?? "default") {
            result.signature = own
            return result
        }
        if let name {
            throw FetchError(
                .transport,
                "credentials of the store: there is no profile `\(name)` with a key in ~/.aws; add it, or set `profile` to a different one"
            )
        }
        if let answer = try await container() { return try Self.parse(answer, now) }
        if asksInstance { return try Self.parse(try await instance(), now) }
        return result
    }

    // MARK: Files

    private func inSharedFiles(_ profile: String) -> RequestSignature? {
        let home = environment("HOME") ?? ""
        let files = [
            (environment("AWS_SHARED_CREDENTIALS_FILE") ?? home + "/.aws/credentials", profile),
            (
                environment("AWS_CONFIG_FILE") ?? home + "/.aws/config",
                profile == "default" ? profile : "profile " + profile
            ),
        ]
        for (path, section) in files {
            let members = Self.section(section, in: Self.text(path) ?? "")
            if let id = members["aws_access_key_id"], let secret = members["aws_secret_access_key"] {
                return RequestSignature(region: "", keyID: id, secret: secret, token: members["aws_session_token"])
            }
        }
        return nil
    }

    /// Returns the members of one section of an INI file.
    static func section(_ name: String, in text: String) -> [String: String] {
        var members: [String: String] = [:]
        var isInside = false
        for line in text.split(whereSeparator: \.isNewline) {
            let line = FieldLines.trimmed(String(line))
            if line.hasPrefix("[") {
                isInside = FieldLines.trimmed(String(line.dropFirst().prefix { $0 != "]" })) == name
            } else if isInside, !line.hasPrefix("#"), !line.hasPrefix(";"), let equals = line.firstIndex(of: "=") {
                members[FieldLines.trimmed(String(line[..<equals])).lowercased()] =
                    FieldLines.trimmed(String(line[line.index(after: equals)...]))
            }
        }
        return members
    }

    private static func text(_ path: String) -> String? {
        guard let file = try? LocalFile.open(path, byteLimit: 1_000_000), let bytes = try? file.bytes() else {
            return nil
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: Services

    private func container() async throws -> [UInt8]? {
        let url: String
        if let path = environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") {
            url = "http://169.254.170.2" + path
        } else if let whole = environment("AWS_CONTAINER_CREDENTIALS_FULL_URI") {
            url = whole
        } else {
            return nil
        }
        let token =
            environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE").flatMap(Self.text)
            ?? environment("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        return try await ask(url, token.map { [HeaderField("Authorization", FieldLines.trimmed($0))] } ?? [])
    }

    private func instance() async throws -> [UInt8] {
        let place = environment("AWS_EC2_METADATA_SERVICE_ENDPOINT") ?? "http://169.254.169.254"
        let token = try await ask(
            place + "/latest/api/token", [HeaderField("X-aws-ec2-metadata-token-ttl-seconds", "21600")], method: "PUT")
        let fields = [HeaderField("X-aws-ec2-metadata-token", String(decoding: token, as: UTF8.self))]
        let roles = place + "/latest/meta-data/iam/security-credentials/"
        let role = String(decoding: try await ask(roles, fields), as: UTF8.self).prefix { !$0.isNewline }
        return try await ask(roles + role, fields)
    }

    private func ask(_ url: String, _ fields: [HeaderField], method: String = "GET") async throws -> [UInt8] {
        var request = FetchRequest(url: try SourceURL(url), fields: fields, maxBytes: 65_536, timeout: .seconds(5))
        request.method = method
        // The URL comes from the environment, so the source policy does not apply.
        request.source = SourceURL(scheme: "credentials", name: url)
        request.isTrusted = true
        request.followsRedirects = false
        let response = try await base.fetch(request)
        guard response.status == 200 else {
            throw FetchError(.transport, "credentials of the store: \(request.url) answered \(response.status)")
        }
        return response.body
    }

    private static func parse(_ bytes: [UInt8], _ now: Double) throws -> Found {
        guard case .object(let members)? = try? JSONParser.parse(bytes) else {
            throw FetchError(
                .transport, "credentials of the store: the response of the credentials endpoint is not a JSON object")
        }
        func text(_ name: String) -> String? {
            guard case .string(let text)? = members.first(where: { $0.name == name })?.value else { return nil }
            return text
        }
        guard let id = text("AccessKeyId"), let secret = text("SecretAccessKey") else {
            throw FetchError(
                .transport, "credentials of the store: the response of the credentials endpoint contains no access key")
        }
        return Found(
            signature: RequestSignature(region: "", keyID: id, secret: secret, token: text("Token")),
            ends: text("Expiration").flatMap(seconds), foundAt: now)
    }

    /// Parses a time such as `2026-11-26T15:00:00Z` and returns Unix seconds. Returns nil if the format is different.
    static func seconds(_ text: String) -> Double? {
        let parts = text.split { !$0.isNumber }.prefix(6).compactMap { Int32($0) }
        guard parts.count == 6, text.hasSuffix("Z") else { return nil }
        var time = tm()
        (time.tm_year, time.tm_mon, time.tm_mday) = (parts[0] - 1900, parts[1] - 1, parts[2])
        (time.tm_hour, time.tm_min, time.tm_sec) = (parts[3], parts[4], parts[5])
        return Double(timegm(&time))
    }
}
