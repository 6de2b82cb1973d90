import ArgumentParser
import Glibc
import Pipeline

struct CacheCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "cache",
        abstract: "Inspect the disk tiers and remove entries from them.",
        discussion: """
            Examples:
              pipectl cache stats
              pipectl cache list --sort size --limit 20
              pipectl cache inspect https://example.org/photo.jpg
              pipectl cache purge https://example.org/photo.jpg
              pipectl cache purge --host example.org
              pipectl cache trim --unused-for 30d
              pipectl cache verify --repair

            Servers and batches can keep running. docs/cache.md documents the members of the JSON output.
            """,
        subcommands: [
            CacheStats.self, CacheList.self, CacheInspect.self, CacheTrim.self, CachePurge.self, CacheClear.self,
            CacheVerify.self,
        ])
}

/// Access to the store in the cache folder without a pipeline, for the `cache` commands.
extension CommonOptions {
    func withStore<Value>(_ work: (DiskStore) throws -> Value) throws -> Value {
        let settings = collectedSettings()
        let disk = try settings.configuration(only: ["disk."]).pipeline.disk
        let folder = try existingCache(settings)
        let store = try DiskStore(folder: folder, configuration: disk)
        defer { store.close() }
        return try work(store)
    }

    /// Returns the cache folder after checking that it contains a cache. Opening a store would create one, which a
    /// read-only command must not do.
    @discardableResult
    func existingCache(_ settings: Settings) throws -> String {
        let folder = settings.cacheFolder
        let problem: String
        switch try FolderContent(folder) {
        // If the path is not a folder, opening the store fails with a more precise error.
        case .cache, .notAFolder: return folder
        case .missing: problem = "there is no cache at \(folder)"
        case .empty: problem = "there is no cache at \(folder): the folder is empty"
        case .unfinished: problem = "there is no cache at \(folder): its creation was interrupted"
        case .foreign(let name):
            problem = "there is no cache at \(folder): the folder contains other files, such as `\(name.prefix(80))`"
        }
        throw CommandFailure(.usage, problem + "; use --cache to name the cache folder")
    }
}
