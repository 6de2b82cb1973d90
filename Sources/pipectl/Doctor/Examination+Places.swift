import ImageServer
import Pipeline
import PipelineFetching
import PipelineFleet
import PipelineSupport

/// Checks the external resources that the settings name: files, folders, origins, the bucket and the Redis server.
extension Examination {
    /// Returns a finding for each resource. Each origin, the bucket and the Redis server receive one small request.
    func places(_ settings: PipelineConfiguration) async -> [Finding] {
        let files = [
            await keyFile,
            await folder("masks", "mask", settings.rendering.masks),
            await folder("overlays", "overlay", settings.rendering.overlays),
        ]
        return files.compactMap { $0 } + (await bases(settings))
            + [await bucket(settings), await fleet(settings)].compactMap { $0 }
    }

    /// Returns the result of checking one resource. An error is reported as `lacks`.
    private func look(
        at subject: String, cost: String, remedy: String, _ found: () async throws -> String
    ) async -> Finding {
        do { return .works(subject, try await found()) } catch {
            return .lacks(subject, "\(error)", cost: cost, remedy: remedy)
        }
    }

    private var keyFile: Finding? {
        get async {
            guard let file = configuration.keysFile else { return nil }
            return await look(
                at: "key file", cost: "`pipectl serve` does not start", remedy: "make the file readable for this user"
            ) {
                _ = try FileText.read(file, limit: 1 << 20)
                return file
            }
        }
    }

    private func folder(_ setting: String, _ step: String, _ path: String?) async -> Finding? {
        guard let path else { return nil }
        let remedy = "make the folder readable for this user, or remove the setting `\(setting)`"
        return await look(at: setting, cost: "recipes with the step `\(step)` fail", remedy: remedy) {
            "\(path), \(Readable.count(try FolderNames(path).count, "file", "files"))"
        }
    }

    private func bases(_ settings: PipelineConfiguration) async -> [Finding] {
        var settings = settings
        (settings.cacheFolder, settings.fleet, settings.remote) = (nil, nil, nil)
        // Any response shows that the origin is reachable.
        settings.acceptedTypes = ["*/*"]
        settings.fetch.maxRetries = 0
        settings.fetch.totalTimeout = min(settings.fetch.totalTimeout, .seconds(10))
        // If no pipeline can be created, the finding about rendering shows the reason.
        guard !configuration.site.baseURLs.isEmpty, let pipeline = try? ImagePipeline(settings) else { return [] }
        var findings: [Finding] = []
        for (name, url) in configuration.site.baseURLs.sorted(by: { $0.key < $1.key }) {
            let cost = "sources of the form `\(name):PATH` cannot be fetched"
            let remedy = "follow the hint in the error, or change the URL in baseURLs"
            findings.append(
                await look(at: "baseURLs \(name)", cost: cost, remedy: remedy) {
                    if url.hasPrefix("s3:"), let folder = try SourceURL(s3: url, isFolder: true) {
                        _ = try await pipeline.buckets?.list(folder, after: nil, limit: 1)
                        return "\(folder) is accessible"
                    }
                    guard !url.hasPrefix("file:") else { return url }
                    let status = try await pipeline.original(for: OriginalRequest(url: url)).status
                    return "\(url) answered \(status)"
                })
        }
        await pipeline.shutdown()
        return findings
    }

    /// Checks the bucket. Returns nil if `remote.s3` is not set.
    private func bucket(_ settings: PipelineConfiguration) async -> Finding? {
        guard let remote = settings.remote else { return nil }
        let (store, base) = remote.transport(settings.fetch)
        let finding = await look(
            at: "bucket", cost: "the bucket is not used, so each machine fetches and renders on its own",
            remedy: "set credentials in remote.s3 that are allowed to read, write, delete and list"
        ) {
            if let folder = try SourceURL(s3: remote.location, isFolder: true) {
                _ = try await store.list(folder, limit: 1)
            }
            return "\(remote.location) is accessible"
        }
        await base.shutdown()
        return finding
    }

    /// Checks the Redis server. Returns nil if `fleet.redis` is not set.
    private func fleet(_ settings: PipelineConfiguration) async -> Finding? {
        guard let fleet = settings.fleet else { return nil }
        let cost = "purges on other machines do not reach this one"
        guard RedisConnection.isLibraryInstalled else {
            let remedy = "install libhiredis0.14 (Debian 12) or libhiredis1.1.0 (Debian 13)"
            return .lacks("fleet", "the library hiredis is not installed", cost: cost, remedy: remedy)
        }
        var redis = RedisConnection.Configuration(fleet.redis)
        redis.authoritiesFile = settings.fetch.authoritiesFile
        let connection = RedisConnection(redis)
        defer { connection.close() }
        return await look(
            at: "fleet", cost: cost, remedy: "check that fleet.redis is correct and that the server is running"
        ) {
            if case .error(let text) = try await connection.send([["PING"]]).first {
                throw RedisError.reply(text, fleet.redis)
            }
            return "\(fleet.redis) is responding"
        }
    }
}
