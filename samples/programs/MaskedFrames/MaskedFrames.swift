import Glibc
import Pipeline

/// A consumer that shows pictures, such as a window, a terminal or a video encoder. In this sample, it writes files.
protocol FrameConsumer {
    mutating func show(_ frame: PixelBuffer) throws
}

/// Writes each frame as a PAM file (Netpbm, RGB with alpha), which common image tools can open.
struct FrameFiles: FrameConsumer {
    struct WriteError: Error {
        var path: String
    }

    let folder: String
    private var count = 0

    init(folder: String) {
        self.folder = folder
        mkdir(folder, 0o755)
    }

    mutating func show(_ frame: PixelBuffer) throws {
        count += 1
        let path = "\(folder)/frame-\(count).pam"
        guard let file = fopen(path, "w") else { throw WriteError(path: path) }
        defer { fclose(file) }
        let head =
            "P7\nWIDTH \(frame.width)\nHEIGHT \(frame.height)\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n"
        fputs(head, file)
        guard fwrite(frame.pixels, 1, frame.pixels.count, file) == frame.pixels.count else {
            throw WriteError(path: path)
        }
        print("\(path): \(frame.width) × \(frame.height)")
    }
}

/// Shows pictures with a mask that is applied after the cache: `masked-frames FOLDER MASK SOURCE…`.
///
/// The cached variant has no mask, so one variant works with any mask that the consumer chooses.
@main
struct MaskedFrames {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 4 else {
            print("usage: masked-frames FOLDER MASK SOURCE…")
            exit(2)
        }
        let pipeline = try ImagePipeline()
        var consumer: any FrameConsumer = FrameFiles(folder: arguments[1])
        let mask = try await pipeline.pixels(
            for: ImageRequest(ImageSource(arguments[2]), recipe: try Recipe("thumbnail:240x240:stretch:up,png")))
        let recipe = try Recipe("thumbnail:240x240:fill:up,png")
        for source in arguments.dropFirst(3) {
            do {
                let picture = try await pipeline.pixels(for: ImageRequest(ImageSource(source), recipe: recipe))
                try consumer.show(picture.masked(by: mask))
            } catch {
                print("skipped: \(error)")
            }
        }
        await pipeline.shutdown()
    }
}
