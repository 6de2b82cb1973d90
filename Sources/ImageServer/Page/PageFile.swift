import CPage
import PipelineSupport

/// A file of the page at `/`. The compiler embeds the files in `Sources/CPage/Web`, so the executable is
/// self-contained.
struct PageFile: Sendable {
    let name: String
    /// The media type.
    let type: String
    let bytes: [UInt8]
    /// The SHA-256 digest of the bytes.
    let tag: String

    /// A version that changes if any of the files changes. All files share it because they refer to each other by
    /// relative paths.
    static let version: String = {
        let contents: [UInt8] = EmbeddedFile.page.flatMap { Array($0.name.utf8) + [0] + $0.bytes + [0] }
        return String(sha256Hex(contents).prefix(12))
    }()

    static let all: [PageFile] = EmbeddedFile.page.map { file in
        // Replaces `{version}` in the file with the current version.
        let text = String(decoding: file.bytes, as: UTF8.self).split(
            separator: "{version}", omittingEmptySubsequences: false)
        let bytes = Array(text.joined(separator: version).utf8)
        return PageFile(name: file.name, type: file.mediaType, bytes: bytes, tag: sha256Hex(bytes))
    }

    static func named(_ name: String) -> PageFile? { all.first { $0.name == name } }
}

/// A file embedded by the compiler.
struct EmbeddedFile {
    let name: String
    let bytes: [UInt8]

    var mediaType: String {
        switch name.split(separator: ".").last {
        case "css": "text/css; charset=utf-8"
        case "html": "text/html; charset=utf-8"
        case "jpg": "image/jpeg"
        case "js": "text/javascript; charset=utf-8"
        case "svg": "image/svg+xml"
        case "webp": "image/webp"
        default: "application/octet-stream"
        }
    }

    static var page: [EmbeddedFile] { listed(page_files_list()) }
    static var samples: [EmbeddedFile] { listed(page_samples_list()) }

    private static func listed(_ list: embedded_files) -> [EmbeddedFile] {
        UnsafeBufferPointer(start: list.files, count: list.count).map { file in
            EmbeddedFile(
                name: String(cString: file.name),
                bytes: Array(UnsafeBufferPointer(start: file.bytes, count: file.count)))
        }
    }
}
