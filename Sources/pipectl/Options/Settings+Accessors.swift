import Glibc
import Pipeline

/// Which private addresses may be fetched from.
enum PrivateAddresses: Sendable, Hashable {
    case none
    case all
    /// Addresses or CIDR blocks, each with an optional port.
    case list([String])
}

extension Settings {
    func bool(_ key: String) -> Bool {
        if case .bool(let value) = value(key) { return value }
        return false
    }

    func integer(_ key: String) -> Int {
        switch value(key) {
        case .int(let value): value
        case .double(let value): Int(value)
        default: 0
        }
    }

    func number(_ key: String) -> Double {
        switch value(key) {
        case .int(let value): Double(value)
        case .double(let value): value
        default: 0
        }
    }

    func text(_ key: String) -> String {
        if case .string(let value) = value(key) { return value }
        return ""
    }

    func list(_ key: String) -> [String] {
        guard case .list(let values) = value(key) else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// The text members of a map by name; other members are left out.
    func textMap(_ key: String) -> [String: String] {
        guard case .map(let members) = value(key) else { return [:] }
        var result: [String: String] = [:]
        for member in members { if case .string(let text) = member.value { result[member.name] = text } }
        return result
    }

    func size(_ key: String) -> SettingSize {
        switch value(key) {
        case .int(let bytes): .bytes(bytes)
        case .string(let text): SettingSize(text) ?? .bytes(0)
        default: .bytes(0)
        }
    }

    /// The folder that a setting names; nil if it is empty.
    func folder(_ key: String) -> String? {
        let path = text(key)
        return path.isEmpty ? nil : resolved(path, in: key)
    }

    /// Resolves a path that a setting names: `~/` is the home folder; a relative path in a settings file is relative to
    /// it.
    func resolved(_ path: String, in key: String) -> String {
        if path.hasPrefix("~/"), let home = environment["HOME"], !home.isEmpty { return home + path.dropFirst() }
        guard case .file(let file, _) = origin(key) else { return path }
        return path.relative(toFolderOf: file)
    }

    // MARK: Named settings

    /// The cache folder: `cache`, else `$XDG_CACHE_HOME/image-pipeline` if that is absolute (as the XDG base directory
    /// specification requires), else `~/.cache/image-pipeline`, else a folder of this user under `/tmp`.
    var cacheFolder: String {
        if let folder = folder("cache") { return folder }
        if let base = environment["XDG_CACHE_HOME"], base.hasPrefix("/") { return base + "/image-pipeline" }
        if let home = environment["HOME"], home.hasPrefix("/") { return home + "/.cache/image-pipeline" }
        return "/tmp/image-pipeline-\(getuid())"
    }

    var presets: [String: String] { textMap("presets") }
    var masksFolder: String? { folder("masks") }
    var overlaysFolder: String? { folder("overlays") }
    var renderQuality: String { text("render.quality") }

    /// The number of concurrent renders: the setting, else the number of processors. A server adds one to the latter,
    /// because workers also spend time copying and waiting, and the cost of starting one more does not matter to it.
    func renderWorkers(serves: Bool) -> Int {
        let workers = integer("render.workers")
        return workers > 0 ? workers : Int(max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))) + (serves ? 1 : 0)
    }

    var allowPrivateAddresses: PrivateAddresses {
        switch value("allowPrivateAddresses") {
        case .bool(true): .all
        case .list: .list(list("allowPrivateAddresses"))
        default: .none
        }
    }

    /// Budgets of the memory tiers in bytes; shares are of the machine's memory.
    var memoryBudgets: PipelineConfiguration.MemoryBudgets {
        let keys = ["memory.originals", "memory.variants", "memory.pixels", "memory.records"]
        let sizes = keys.map { size($0) }
        let needsTotal = sizes.contains { if case .share = $0 { true } else { false } }
        let total = needsTotal ? MachineMemory.bytes : 0
        let originals = sizes[0].bytes(of: total)
        // Unless set, it is left to the pipeline: a tenth of `originals`.
        var records: Int? = sizes[3].bytes(of: total)
        if case .builtIn = origin("memory.records") { records = nil }
        return PipelineConfiguration.MemoryBudgets(
            originals: originals, variants: sizes[1].bytes(of: total), pixels: sizes[2].bytes(of: total),
            records: records)
    }

    /// Budgets of the disk tiers and the space to keep free, in bytes; shares are of the file system that holds
    /// `folder`. The space to keep free is nil if it is not set: the store then chooses.
    func diskBudgets(folder: String) -> (originals: Int, variants: Int, freeSpace: Int?) {
        let sizes = ["disk.originals", "disk.variants", "disk.freeSpace"].map { size($0) }
        let needsTotal = sizes.contains { if case .share = $0 { true } else { false } }
        let total = needsTotal ? MachineLimits.fileSystemBytes(holding: folder) : 0
        var freeSpace: Int? = sizes[2].bytes(of: total)
        if case .builtIn = origin("disk.freeSpace") { freeSpace = nil }
        return (sizes[0].bytes(of: total), sizes[1].bytes(of: total), freeSpace)
    }

    /// A limit given as a size, in bytes; a share is of the machine's memory.
    func bytes(_ key: String) -> Int {
        switch size(key) {
        case .bytes(let bytes): bytes
        case .share(let share): Int(Double(MachineMemory.bytes) * share)
        }
    }

    /// The limit if it is set, else `builtIn`, which avoids looking up the machine's memory.
    func bytes(_ key: String, builtIn: Int) -> Int {
        if case .builtIn = origin(key) { builtIn } else { bytes(key) }
    }
}

extension String {
    /// Resolves a path written in a file against that file's folder.
    func relative(toFolderOf file: String) -> String {
        guard !hasPrefix("/"), let slash = file.lastIndex(of: "/") else { return self }
        return file[...slash] + self
    }
}

/// Sizes of the machine's resources.
enum MachineLimits {
    /// Size in bytes of the file system that holds `path` or its nearest existing parent; 10 GB if that is unknown.
    static func fileSystemBytes(holding path: String) -> Int {
        var path = path
        while !path.isEmpty {
            var status = statvfs()
            if statvfs(path, &status) == 0 { return Int(status.f_blocks) * Int(status.f_frsize) }
            guard let slash = path.lastIndex(of: "/") else { break }
            path = String(path[..<slash])
        }
        return 10_000_000_000
    }
}
