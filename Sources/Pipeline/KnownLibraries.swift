import Glibc
import PipelineCaching
import PipelineSupport
import Synchronization
package import Variants

/// Keeps track of the libraries that variants are rendered with. Variant keys depend on the libraries, but an answer
/// from the cache must not load a library or start a worker.
///
/// The file `cache.libraries` in the cache folder therefore keeps what a renderer reported last. The file also contains
/// a digest of everything that decides which libraries are loaded: the library and plug-in files and folders (by
/// device, inode, size and modification time), the loader's cache and search path, and this program. The report is used
/// for as long as the digest matches.
final class KnownLibraries: Sendable {
    private struct Kept: Equatable {
        var libraries: RenderLibraries
        /// Whether the same libraries would be loaded now.
        var isCurrent: Bool
    }

    private let renderer: any Rendering
    private let folder: String?
    private let libvips: String?
    private let threads: OwnedThreads
    /// The content of the file, or nil until it has been read or written.
    private let state = Mutex<Kept?>(nil)

    init(_ renderer: any Rendering, folder: String?, libvips: String? = nil, threads: OwnedThreads) {
        self.libvips = libvips
        self.renderer = renderer
        self.folder = folder
        self.threads = threads
    }

    /// The libraries if they are already known, or `unknown` otherwise.
    var known: RenderLibraries { renderer.libraries ?? current ?? .unknown }

    private var current: RenderLibraries? { state.withLock { $0?.isCurrent == true ? $0?.libraries : nil } }

    /// Returns the libraries. Starts a worker or loads the libraries only if no valid report is available. If that
    /// fails, returns the latest report, so that stored variants are found.
    func callAsFunction() async -> RenderLibraries {
        if let libraries = renderer.libraries { return await keep(libraries) }
        if let current { return current }
        let kept = await threads.run { self.read() }
        state.withLock { $0 = kept }
        if let current { return current }
        guard let libraries = await renderer.loadLibraries() else { return kept?.libraries ?? .unknown }
        return await keep(libraries)
    }

    // MARK: The file

    private var path: String? { folder.map { $0 + "/cache.libraries" } }

    private func read() -> Kept? {
        guard let path, let text = Self.text(path) else { return nil }
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0] == Self.head, let libraries = RenderLibraries(text: lines[2]) else {
            return nil
        }
        return Kept(libraries: libraries, isCurrent: lines[1] == identity(libraries))
    }

    private func keep(_ libraries: RenderLibraries) async -> RenderLibraries {
        let kept = Kept(libraries: libraries, isCurrent: true)
        let isNew = state.withLock { state in
            defer { state = kept }
            return state != kept
        }
        guard isNew, let folder, let path, !libraries.files.isEmpty else { return libraries }
        await threads.run { [self] in
            let text = [Self.head, identity(libraries), libraries.text].joined(separator: "\n")
            if Self.text(path) == text { return }
            let temporary = "\(folder)/temporary/\(getpid())-libraries"
            let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            // If the file cannot be written, the next process determines the libraries again.
            guard file >= 0 else { return }
            let isWritten = Array(text.utf8).withUnsafeBytes { FileIO.write($0, to: file) }
            close(file)
            if !isWritten || rename(temporary, path) != 0 { unlink(temporary) }
        }
        return libraries
    }

    /// The first line. Change it whenever the contents of the file get a new meaning.
    private static let head = "image-pipeline libraries 2, rendering \(RenderRevision.rendering)"

    private static func text(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size < 1 << 20 else { return nil }
        return FileIO.bytes(Int(status.st_size), of: file).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Returns a digest of the current state of everything that decides which libraries are loaded.
    private func identity(_ libraries: RenderLibraries) -> String {
        let variables: [String] = ["LD_LIBRARY_PATH", WorkerConfiguration.libvipsVariable]
        let search = variables.map { name in
            getenv(name).map { String(cString: $0) } ?? ""
        }
        let files = (libraries.files + ["/proc/self/exe"]).map { path in
            var status = stat()
            guard stat(path, &status) == 0 else { return "-" }
            return
                "\(status.st_dev) \(status.st_ino) \(status.st_size) \(status.st_mtim.tv_sec) \(status.st_mtim.tv_nsec)"
        }
        return sha256Hex((search + [libvips ?? ""] + files).joined(separator: "\n"))
    }
}

extension ImagePipeline {
    /// Returns the libraries that this pipeline renders with. Loads the libraries if they are not known yet.
    package func libraries() async -> RenderLibraries { await render.libraries() }

    /// Returns the names of the masks and overlays in their folders, by the name of the step that uses them.
    package func pictureNames() async -> [String: [String]] {
        await admit.threads.run { [admit] in ["mask": admit.masks.names, "overlay": admit.overlays.names] }
    }

    /// Returns the libraries that a pipeline with this configuration would render with, without opening the caches.
    package static func libraries(of configuration: PipelineConfiguration) async -> RenderLibraries {
        let observe = Observer(logger: configuration.logger, metrics: nil, tracer: nil)
        let renderer = configuration.rendering.madeRenderer(observe)
        let threads = OwnedThreads(count: 1)
        let libraries = await KnownLibraries(renderer, folder: configuration.cacheFolder, threads: threads)()
        (renderer as? WorkerPool)?.warnOfRefusal()
        await renderer.shutdown()
        return libraries
    }
}
