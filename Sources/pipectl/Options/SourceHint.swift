import Glibc
import Pipeline
import PipelineSupport

/// Suggests what the user probably meant by a source that was not found.
enum SourceHint {
    /// Returns a suggestion to append to an error message, or nil if there is none.
    static func text(for source: String) -> String? {
        var status = stat()
        if stat(source, &status) == 0 {
            guard status.st_mode & S_IFMT == S_IFDIR else { return nil }
            return "it is a folder; to render all pictures in it, use `pipectl batch \(source) -r RECIPE -o DIR`"
        }
        return looksLikeHost(source) ? "did you mean https://\(SourceURL.hidingSecrets(source))?" : nil
    }

    /// Returns an error message if an argument of `serve` is not a folder. Returns nil if it is a folder or cannot be
    /// read.
    static func problem(ofFolder path: String) -> String? {
        var status = stat()
        guard stat(path, &status) != 0 else {
            if status.st_mode & S_IFMT == S_IFDIR { return nil }
            let isSettings = path.hasSuffix(".yaml") || path.hasSuffix(".yml")
            return "\(path) is a file; `pipectl serve` expects a folder of pictures"
                + (isSettings ? "; for a settings file, use `--config \(path)`" : "")
        }
        guard errno == ENOENT else { return nil }
        let remedy =
            Int(path) != nil
            ? "to set the port, use `--listen 127.0.0.1:\(path)`"
            : "use `pipectl serve FOLDER`, or `pipectl serve` without a folder for other sources"
        return "the folder \(path) does not exist; " + remedy
    }

    /// Whether the string begins with a host name, such as `example.org`, with or without a port, followed by a path.
    static func looksLikeHost(_ text: String) -> Bool {
        guard let slash = text.firstIndex(of: "/"), text[slash...].count > 1 else { return false }
        let parts = text[..<slash].split(separator: ":", omittingEmptySubsequences: false)
        guard let host = parts.first, parts.count == 1 || parts.count == 2 && Int(parts[1]) != nil else { return false }
        let labels = host.split(separator: ".", omittingEmptySubsequences: false)
        guard labels.count > 1, let last = labels.last, last.utf8.count > 1, last.utf8.allSatisfy(\.isLetter) else {
            return false
        }
        return labels.allSatisfy { label in
            !label.isEmpty && label.utf8.allSatisfy { $0.isLetterOrDigit || $0 == 0x2D }
        }
    }
}
