import Glibc
import Pipeline
import PipelineSupport
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    /// Systems that lack a resource: each command reports it at once.
    @Suite struct SurroundingsOfCommands {
        private let site = CommandSite()
        private let picture = Samples.original("night-tiny.jpg")
        private static let privileges: Comment = "needs leave to mount a tmpfs"

        /// Runs the program behind a shell command, which ends in `"$@"`.
        private func run(after preparation: String, _ arguments: [String]) async throws -> ChildProgram.Ended {
            let words = ["-m", "sh", "-c", preparation + " && exec \"$@\"", "sh", ChildProgram.path] + arguments
            return await (try ChildProgram(words, program: "unshare", folder: site.folder.path, seconds: 60)).end
        }

        private func run(refusing calls: String, _ arguments: [String]) async throws -> ChildProgram.Ended {
            let program = try builtProgram("refused-calls")
            let words = [calls, ChildProgram.path] + arguments
            return await (try ChildProgram(words, program: program, folder: site.folder.path, seconds: 60)).end
        }

        @Test(
            .enabled(if: SmallDisk.isPermitted, privileges),
            arguments: [["recipes"], ["get", "a.jpg"], ["--help"], []])
        func `without /proc every command says so`(arguments: [String]) async throws {
            let ended = try await run(after: "mount -t tmpfs none /proc", arguments)
            #expect(ended.exit == 2 && ended.output.isEmpty, "\(ended.text)")
            #expect(ended.errors.contains("/proc is not mounted"), "\(ended.errors)")
        }

        @Test func `where clone3 is refused, commands that need threads say so`() async throws {
            let get = ["get", picture, "-r", "thumbnail:20", "-o", "a.jpg"]
            let batch = ["batch", picture, "-r", "thumbnail:20", "-o", "out"]
            for words in [get, batch, ["serve", "--listen", "127.0.0.1:0"], ["info", picture]] {
                let ended = try await run(refusing: "clone3", words + ["--cache", site.cache])
                #expect(ended.exit == 2 && ended.errors.contains("clone3"), "\(words): \(ended.errors)")
                #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
            }
            #expect(try await run(refusing: "clone3", ["recipe", "circle"]).text.hasPrefix("circle\n"))
        }

        @Test func `where memfd_create is refused, get names it, and a batch ends with one sentence`() async throws {
            let flags = ["-r", "thumbnail:20", "--cache", site.cache, "-o"]
            let get = try await run(refusing: "memfd_create", ["get", picture] + flags + ["a.jpg"])
            #expect(get.exit == 6 && get.errors.contains("memfd_create: Operation not permitted"), "\(get.errors)")
            #expect(get.errors.split(separator: "\n").count == 1, "\(get.errors)")
            let recipes = try await run(refusing: "memfd_create", ["recipes", "--cache", site.cache])
            #expect(recipes.exit == 0 && recipes.errors.contains("memfd_create"), "\(recipes.errors)")
            let sources = Samples.originals.map(Samples.original)
            let batch = try await run(refusing: "memfd_create", ["batch"] + sources + flags + ["out"])
            #expect(batch.exit == 6 && batch.errors.contains("memfd_create"), "\(batch.errors)")
            #expect(batch.errors.split(separator: "\n").count == 1, "\(batch.errors)")
        }

        @Test(.enabled(if: SmallDisk.isPermitted, privileges)) func `without /dev/null, get names it`() async throws {
            let words = ["get", picture, "-r", "thumbnail:20", "-o", "a.jpg", "--cache", site.cache]
            let ended = try await run(after: "mount -t tmpfs none /dev", words)
            #expect(ended.exit == 6 && ended.errors.contains("/dev/null: No such file"), "\(ended.errors)")
        }

        @Test(arguments: ["batch", "get", "info", "explain", "recipes", "serve"])
        func `with too little address space, commands that need threads end with one sentence`(command: String)
            async throws
        {
            var words = [command]
            if !["recipes", "serve"].contains(command) { words.append(picture) }
            if ["batch", "get"].contains(command) { words += ["-r", "thumbnail:20", "-o", "out"] }
            // The program itself starts; its threads would not.
            for kilobytes in [200_000, 290_000] {
                let script = "ulimit -v \(kilobytes) && exec \"$@\""
                let limited = ["-c", script, "sh", ChildProgram.path] + words + ["--cache", site.cache]
                let child = try ChildProgram(limited, program: "sh", folder: site.folder.path, seconds: 60)
                let ended = await child.end
                #expect(ended.exit == 2 && ended.errors.contains("`ulimit -v`"), "\(ended.errors)")
                #expect(ended.errors.split(separator: "\n").count == 1, "\(ended.errors)")
            }
        }

        @Test(arguments: ["get", "doctor", "recipes"])
        func `with too few files a command ends with one sentence`(command: String) async throws {
            let words = command == "get" ? ["get", picture, "-r", "thumbnail:20", "-o", "out"] : [command]
            for files in [8, 12, 31] {
                let limited = ["-c", "ulimit -n \(files) && exec \"$@\"", "sh", ChildProgram.path] + words
                let child = try ChildProgram(
                    limited + ["--cache", site.cache], program: "sh", folder: site.folder.path, seconds: 60)
                let ended = await child.end
                #expect(ended.exit == 2 && ended.errors.contains("`ulimit -n`"), "\(files): \(ended.errors)")
            }
        }

        @Test(.enabled(if: SmallDisk.isPermitted, privileges))
        func `if the home folder is the root, the error of the cache folder says what to do`() async throws {
            let readOnly = "mount --bind / / && mount -o remount,bind,ro / && export HOME=/"
            let words = ["-m", "sh", "-c", readOnly + " && cd / && exec \"$@\"", "sh", ChildProgram.path]
            let get = words + ["get", picture, "-r", "thumbnail:20", "--json"]
            let ended = await (try ChildProgram(get, program: "unshare", folder: "/", seconds: 60)).end
            #expect(ended.exit == 7 && ended.errors.contains("(/.cache)"), "\(ended.errors)")
            #expect(ended.errors.contains("--cache DIR or XDG_CACHE_HOME") && !ended.errors.contains("//"))
            let settings = Settings.collected(assignments: ["masks=~/m"], environment: ["HOME": "/"])
            #expect(settings.cacheFolder == "/.cache/image-pipeline")
            #expect(try settings.configuration(only: ["masks"]).pipeline.rendering.masks == "/m")
        }
    }
}
