import PipelineSupport
import Glibc
import TestSupport
import Testing

@testable import pipectl

/// The built program, driven as a shell would: real processes, a real origin, real exit codes. One at a time, since each
/// is a program that decodes images.
@Suite(.serialized) struct CommandTests {}

/// A scratch folder with a cache folder's place in it, and the program run there.
struct CommandSite: Sendable {
    let folder = ScratchFolder()
    let cache: String
    /// `--cache` and leave to ask the loopback origin.
    let flags: [String]

    init() {
        cache = folder("cache")
        flags = [
            "--cache", cache, "--set", #"allowPrivateAddresses=["127.0.0.1"]"#, "--set", "retries=0", "--set",
            "limits.seconds=120",
        ]
    }

    /// Runs a command that takes sources.
    func run(_ arguments: [String], input: String = "/dev/null") async throws -> ChildProgram.Ended {
        try await ChildProgram.run(arguments + flags, input: input, folder: folder.path)
    }

    /// Runs just these arguments.
    func plain(_ arguments: [String]) async throws -> ChildProgram.Ended {
        try await ChildProgram.run(arguments, folder: folder.path)
    }
}

/// The repository's sample files.
enum Samples {
    static let folder: String = {
        let parts = #filePath.split(separator: "/", omittingEmptySubsequences: false)
        return parts.dropLast(4).joined(separator: "/") + "/samples"
    }()

    static func original(_ name: String) -> String { folder + "/originals/" + name }
    static func broken(_ name: String) -> String { folder + "/broken/" + name }

    static var originals: [String] {
        guard let names = try? FolderNames(folder + "/originals") else { return [] }
        return (0..<names.count).compactMap { names[$0] }
    }
}

extension SettingValue {
    /// The value of a JSON line; `.null` for what is none.
    static func parsed(_ text: some StringProtocol) -> SettingValue {
        (try? JSONParser.parse(String(text))) ?? .null
    }

    /// A member of members: `at("error", "code")`.
    func at(_ names: String...) -> SettingValue? {
        var value: SettingValue? = self
        for name in names { value = value?[name] }
        return value
    }
}
