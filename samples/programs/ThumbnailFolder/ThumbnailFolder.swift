import Glibc
import Pipeline

/// Creates thumbnails of all files in a folder: `thumbnail-folder FROM TO [RECIPE]`.
///
/// This is the simplest use of the library: one pipeline, a few requests at a time, and errors that are printed and
/// skipped.
@main
struct ThumbnailFolder {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count >= 3 else {
            print("usage: thumbnail-folder FROM TO [RECIPE]")
            exit(2)
        }
        let recipe = try Recipe(arguments.count > 3 ? arguments[3] : "thumbnail:256,webp")
        mkdir(arguments[2], 0o755)
        let pipeline = try ImagePipeline()
        let names = files(in: arguments[1])
        await withTaskGroup(of: Void.self) { group in
            var waiting = names.makeIterator()
            func addNext() {
                guard let name = waiting.next() else { return }
                group.addTask {
                    await thumbnail("\(arguments[1])/\(name)", into: "\(arguments[2])/\(name)", recipe, pipeline)
                }
            }
            for _ in 0..<4 { addNext() }
            while await group.next() != nil { addNext() }
        }
        await pipeline.shutdown()
    }

    static func thumbnail(_ path: String, into target: String, _ recipe: Recipe, _ pipeline: ImagePipeline) async {
        do {
            let response = try await pipeline.respond(to: ImageRequest(.file(path), recipe: recipe))
            let name = "\(target).\(response.format.fileExtension)"
            guard let file = fopen(name, "w") else { return print("\(name): \(String(cString: strerror(errno)))") }
            defer { fclose(file) }
            fwrite(response.bytes, 1, response.bytes.count, file)
            print("\(name): \(response.width) × \(response.height), \(response.bytes.count) bytes")
        } catch {
            print("skipped: \(error)")
        }
    }

    static func files(in folder: String) -> [String] {
        guard let directory = opendir(folder) else {
            print("\(folder): \(String(cString: strerror(errno)))")
            exit(1)
        }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }
}
