import PipelineSupport
import Glibc
import TestSupport
import Testing

@testable import pipectl

/// The built program, driven as a shell would: real processes, a real origin, real exit codes.
@Suite struct CommandTests {}

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

extension SettingValue {
    /// The value of a JSON line; `.null` for other text.
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
