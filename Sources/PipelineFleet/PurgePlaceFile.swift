import Glibc
import PipelineSupport

/// A node's place in the stream of purges, in a file that is replaced by rename.
///
/// Three lines: `purge-place 1`, `NUMBER STREAM-ID`, and the SHA-256 of the lines before. Anything else is a damaged
/// place.
package final class PurgePlaceFile: Sendable {
    /// Why the place could not be stored.
    package struct Failure: Error, Sendable, Hashable, CustomStringConvertible {
        package let description: String
    }

    private let folder: String
    private let thread = OwnedThreads(count: 1)
    private var path: String { folder + "/cache.purge-place" }

    /// - Parameter folder: a folder that exists. Processes that share it are one node: what one of them has applied to what they
    ///   share, the others need not.
    package init(folder: String) { self.folder = folder }

    /// Where the node has to start; `.new` only if there is no file.
    package func read() async -> PurgeStart { await thread.run { self.readFile() } }

    /// Stores a place; returns once it is on disk.
    package func write(_ place: PurgePlace) async throws(Failure) {
        try await thread.result { () throws(Failure) in try self.writeFile(place) }
    }

    private static func text(_ place: PurgePlace) -> String {
        let lines = "purge-place 1\n\(place.number) \(place.streamID)\n"
        return lines + sha256Hex(lines) + "\n"
    }

    private func readFile() -> PurgeStart {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return errno == ENOENT ? .new : .damagedPlace }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 256)
        let count = buffer.withUnsafeMutableBytes { FileIO.fill($0, from: file) }
        let text = String(decoding: buffer[..<count], as: UTF8.self)
        let words = text.split { $0 == "\n" || $0 == " " }
        guard words.count == 5, let number = PurgePlace.number(String(words[2])),
            let id = StreamID(String(words[3]))
        else { return .damagedPlace }
        let place = PurgePlace(number: number, streamID: id)
        return text == Self.text(place) ? .place(place) : .damagedPlace
    }

    private func writeFile(_ place: PurgePlace) throws(Failure) {
        let temporary = "\(path).\(getpid()).new"
        let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failure() }
        let isWritten = Array(Self.text(place).utf8).withUnsafeBytes { FileIO.write($0, to: file) } && fsync(file) == 0
        let problem = isWritten ? nil : failure()
        close(file)
        if let problem {
            unlink(temporary)
            throw problem
        }
        guard rename(temporary, path) == 0 else { throw failure() }
        // The rename itself is on disk once the folder is.
        let parent = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard parent >= 0 else { throw failure() }
        defer { close(parent) }
        guard fsync(parent) == 0 else { throw failure() }
    }

    /// Tells what `errno` says.
    private func failure() -> Failure {
        Failure(
            description: """
                cannot store the place in the stream of purges in `\(path)` (\(String(cString: strerror(errno)))): \
                after a restart purges are applied again
                """)
    }
}
