import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Commands on a folder that is not a cache.
    @Suite struct CacheFolders {
        private let site = CommandSite()
        private static let looking = [
            ["stats"], ["list"], ["inspect", "abcd"], ["verify"], ["verify", "--repair"],
            ["trim", "--unused-for", "1s"],
            ["purge", "http://127.0.0.1/a"], ["purge", "--host", "127.0.0.1"], ["clear"],
        ]

        /// Everything in a folder: names, kinds, access, sizes and times of change.
        private func tree(_ path: String) async throws -> String {
            let find = try HelperProgram(["sh", "-c", "find \(path) -printf '%P %y %m %s %T@ %C@\\n' | sort"])
            _ = await find.end()
            return find.text
        }

        private func home() -> String {
            let letter = site.folder.write("dear", to: "letter.txt")
            let home = String(letter.dropLast("/letter.txt".count)) + "/home"
            for path in ["", "/bodies", "/bodies/ab", "/temporary"] { mkdir(home + path, 0o755) }
            for path in ["/letter.txt", "/bodies/ab/notes.txt", "/temporary/thesis.doc", "/cache.sqlite"] {
                _ = site.folder.write("mine", to: "home" + path)
            }
            return home
        }

        @Test func `looking at a folder without a cache says so, and writes nothing`() async throws {
            let empty = site.folder("empty")
            mkdir(empty, 0o755)
            for (path, words) in [
                (home(), "contains other files"), (empty, "the folder is empty"),
                (site.folder("none"), "there is no cache at"),
            ] {
                let before = try await tree(site.folder(""))
                for command in Self.looking {
                    let ended = try await site.plain(["cache"] + command + ["--cache", path])
                    #expect(ended.exit == 2 && ended.errors.contains(words), "\(command): \(ended.errors)")
                    #expect(ended.errors.contains(path) && ended.errors.contains("--cache") && ended.output.isEmpty)
                }
                #expect(try await tree(site.folder("")) == before)
            }
        }

        @Test func `a folder with other files is made no cache of, whatever its access`() async throws {
            let home = home()
            let out = site.folder("out")
            for access in [0o700, 0o755] as [UInt32] {
                chmod(home, access)
                let before = try await tree(home)
                for words in [
                    ["get", Samples.original("grey.jpg"), "-r", "thumbnail:20", "-o", out],
                    ["batch", Samples.original("grey.jpg"), "-r", "thumbnail:20", "-o", out],
                    ["serve", "--listen", "127.0.0.1:0", "--set", "allowUnsigned=true"],
                ] {
                    let ended = try await site.plain(words + ["--cache", home])
                    #expect(ended.exit == 7, "\(words): \(ended.errors)")
                    #expect(
                        ended.errors.contains("not a cache and contains other files") && ended.errors.contains(home))
                    #expect(ended.errors.contains("use an empty folder"))
                }
                #expect(try await tree(home) == before)
            }
        }
    }
}
