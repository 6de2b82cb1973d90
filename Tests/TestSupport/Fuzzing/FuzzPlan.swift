import Glibc

/// The parameters that `scripts/fuzz` passes in the environment. Without them, each target gets a few hundred inputs.
public struct FuzzPlan: Sendable {
    /// `FUZZ_TARGET`: the target to run; nil to run all targets.
    public var target: String?
    /// `FUZZ_SECONDS`: how long each target runs, in seconds; nil to stop after `count` inputs.
    public var seconds: Double?
    /// `FUZZ_COUNT`: the number of inputs per target if no time is given; nil to use the target's default.
    public var count: Int?
    /// `FUZZ_SEED`: the seed, 1 by default. Input `n` of a target depends only on the seed and `n`.
    public var seed: UInt64
    /// `FUZZ_INPUT`: a file that is used instead of generated inputs.
    public var input: String?

    public static let current = FuzzPlan()

    private init() {
        func value(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
        target = value("FUZZ_TARGET")
        seconds = value("FUZZ_SECONDS").flatMap(Double.init)
        count = value("FUZZ_COUNT").flatMap(Int.init)
        seed = value("FUZZ_SEED").flatMap(UInt64.init) ?? 1
        input = value("FUZZ_INPUT")
    }

    /// Whether the plan includes a target.
    public func includes(_ name: String) -> Bool { target == nil || target == name }

    /// Returns the bytes of a file, or nil if it cannot be read.
    public static func contents(_ path: String) -> [UInt8]? { FuzzFiles.read(path) }

    /// Saves an input that revealed a problem and returns its path.
    public static func keep(_ bytes: [UInt8], as name: String) -> String {
        let file = FuzzInputFile(name)
        file.write(bytes)
        return file.path
    }

    /// The root folder of the package.
    public static let root = String(#filePath.dropLast("/Tests/TestSupport/Fuzzing/FuzzPlan.swift".count))
}

/// Reads the files of fuzz targets.
enum FuzzFiles {
    static func read(_ path: String) -> [UInt8]? {
        guard let file = fopen(path, "r") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
        return bytes
    }

    /// Returns the contents of the files in `fuzz/corpus/NAME`, sorted by name.
    static func corpus(_ name: String) -> [[UInt8]] {
        let path = FuzzPlan.root + "/fuzz/corpus/" + name
        guard let folder = opendir(path) else { return [] }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted().compactMap { read(path + "/" + $0) }
    }
}

/// The current input, in `.build/fuzz/NAME.input`. The file remains if the input crashes the process.
final class FuzzInputFile {
    let path: String
    private let file: Int32

    init(_ name: String) {
        let folder = FuzzPlan.root + "/.build/fuzz"
        mkdir(FuzzPlan.root + "/.build", 0o755)
        mkdir(folder, 0o755)
        path = "\(folder)/\(name).input"
        file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    }

    deinit { close(file) }

    func write(_ bytes: [UInt8]) {
        _ = pwrite(file, bytes, bytes.count, 0)
        _ = ftruncate(file, off_t(bytes.count))
    }

    func remove() { unlink(path) }
}
