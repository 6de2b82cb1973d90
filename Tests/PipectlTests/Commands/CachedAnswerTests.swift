import Glibc
import TestSupport
import Testing

@testable import pipectl

extension CommandTests {
    @Suite struct CachedAnswer {
        @Test func `get answers from the cache with four threads and starts no worker`() async throws {
            let folder = ScratchFolder()
            // More than a pipe holds, so that the program stands still in the midst of writing its answer.
            let words = [
                "get", Samples.original("dunes-2mp.jpg"), "-r", "thumbnail:900,png", "--cache", folder("c"),
            ]
            let first = try await ChildProgram.run(words + ["-o", "first"], folder: folder.path)
            #expect(first.exit == 0, "\(first.errors)")
            let answer = try #require(folder.bytes("first"))
            #expect(answer.count > 1 << 18)

            #expect(mkfifo(folder("pipe"), 0o600) == 0)
            let pipe = open(folder("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            defer { close(pipe) }
            let child = try ChildProgram(words + ["-o", "pipe"], folder: folder.path)
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            var received: [UInt8] = []
            func receive() -> Bool {
                let count = read(pipe, &buffer, buffer.count)
                if count > 0 { received += buffer[..<count] }
                return count > 0
            }
            try await waitWhile { !receive() }
            // The main thread, and threads that look things up, store, and wait for signals.
            #expect(child.threads.map { $0 <= 4 } == true, "\(child.threads ?? 0)")
            #expect(child.children.isEmpty)
            try await waitWhile {
                while receive() {}
                return received.count < answer.count
            }
            let ended = await child.end
            #expect(ended.exit == 0 && ended.errors == "" && received == answer)
        }

        @Test func `a limit on the length of files is an error that says so, and ends nothing`() async throws {
            let folder = ScratchFolder()
            let line = "ulimit -f 8; '\(ChildProgram.path)' get '\(Samples.original("dusk-2mp.jpg"))' -r thumbnail:100 "
            let shell = try HelperProgram(["sh", "-c", line + "-o out --cache c; echo exit $?"], folder: folder.path)
            #expect(await shell.end() == 0)
            #expect(shell.text.contains("pipectl: "), "\(shell.text)")
            #expect(shell.text.contains("exit 7") || shell.text.contains("exit 6"), "\(shell.text)")
        }
    }
}
