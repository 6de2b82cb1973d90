import HTTPCaching
import Pipeline
import PipelineFetching

/// Restricts the files, buckets and URLs that queue entries may use.
struct QueueBounds: Sendable {
    /// Folders and URL prefixes.
    private struct AllowedLocations: Sendable {
        var folders: [OpenFolder] = []
        var urls: [HostPattern] = []
        var isEmpty: Bool { folders.isEmpty && urls.isEmpty }

        init(_ texts: [String], of option: String, takesHTTP: Bool) throws(CommandFailure) {
            for text in texts {
                guard text.firstRange(of: "://") != nil else {
                    do throws(LocalFile.Failure) {
                        folders.append(try OpenFolder(absolutePath(text), at: absolutePath(text), followsLinks: false))
                    } catch {
                        throw CommandFailure(.usage, "\(option): \(error.message)")
                    }
                    continue
                }
                guard takesHTTP || text.utf8.starts(with: "s3://".utf8), let pattern = try? HostPattern(text) else {
                    throw CommandFailure(
                        .usage,
                        "\(option): `\(SourceURL.redacting(text))` is not a folder, "
                            + (takesHTTP ? "https://HOST/PATH or s3://BUCKET/PREFIX" : "or s3://BUCKET/PREFIX"))
                }
                urls.append(pattern)
            }
        }

        func holds(_ url: SourceURL) -> Bool {
            !urls.isEmpty && HostPolicy(allow: urls).refusal(of: url) == nil
        }
    }

    private let outputs: AllowedLocations
    private let sources: AllowedLocations

    /// Parses the values of `--output` and `--sources`. If `outputs` is empty, entries may write only to buckets. If
    /// `sources` is empty, entries may read only URLs.
    init(outputs: [String], sources: [String]) throws(CommandFailure) {
        self.outputs = try AllowedLocations(outputs, of: "--output", takesHTTP: false)
        self.sources = try AllowedLocations(sources, of: "--sources", takesHTTP: true)
    }

    /// The folders from which a pipeline may read files.
    var sourceFolders: [OpenFolder] { sources.folders }

    /// Returns the reason why a source must not be read, or nil if it may be.
    func refusal(ofSource text: String) -> BatchFailure? {
        switch ImageSource(text) {
        case .file(let path):
            if sources.folders.contains(where: { $0.contains(path) }) { return nil }
        case .url(let text):
            // The fetch reports a malformed URL.
            guard !sources.isEmpty, let url = try? SourceURL(named: text) else { return nil }
            if sources.holds(url) { return nil }
        case .bytes: break
        }
        return BatchFailure(
            code: .sourceRefused,
            message:
                "\(SourceURL.redacting(text)): not covered by any `--sources` option of this worker; "
                + "start the worker with a `--sources` that covers it"
        )
    }

    /// Returns the folder on this machine that contains an output folder, or nil if the output folder is in a bucket.
    func folder(for output: String) throws(BatchFailure) -> OpenFolder? {
        if let url = try? SourceURL(stored: output, isFolder: true) {
            if outputs.isEmpty || outputs.holds(url) { return nil }
        } else if output.utf8.first == UInt8(ascii: "/"),
            let folder = outputs.folders.first(where: { $0.contains(output) })
        {
            return folder
        }
        throw BatchFailure(
            code: .outputRefused,
            message:
                "\(SourceURL.redacting(output)): not covered by any `--output` option of this worker; "
                + "start the worker with an `--output` that covers it"
        )
    }
}
