import Glibc
import PipelineSupport

/// The file in which earlier versions stored a node's position in the stream of purges. It is read once.
///
/// The file has three lines: `purge-place 1`, `NUMBER STREAM-ID`, and the SHA-256 of the previous lines. Any other
/// content is treated as a damaged position.
package final class PurgePositionFile: Sendable {
    private let path: String
    private let thread = OwnedThreads(count: 1)

    package init(folder: String) { path = folder + "/cache.purge-place" }

    /// Deletes the file if it exists.
    package func remove() async { await thread.run { [path] in _ = unlink(path) } }

    /// Returns the position in the file, or `.new` if the file is missing.
    package func read() async -> PurgeStart {
        await thread.run { [path] in
            let file = open(path, O_RDONLY | O_CLOEXEC)
            guard file >= 0 else { return errno == ENOENT ? .new : .damagedPosition }
            defer { close(file) }
            var buffer = [UInt8](repeating: 0, count: 256)
            let count = buffer.withUnsafeMutableBytes { FileIO.fill($0, from: file) }
            let text = String(decoding: buffer[..<count], as: UTF8.self)
            let words = text.split { $0 == "\n" || $0 == " " }
            guard words.count == 5, let position = PurgePosition("\(words[2]) \(words[3]) ") else {
                return .damagedPosition
            }
            let lines = "purge-place 1\n\(position.number) \(position.streamID)\n"
            return text == lines + sha256Hex(lines) + "\n" ? .position(position) : .damagedPosition
        }
    }
}
