import Glibc
import PipelineCaching
import PipelineSupport
import Synchronization
package import Variants

/// The libraries that variants are made with. Keys depend on them, and an answer from the cache loads none and starts no
/// worker: what a renderer reported last is kept in the cache folder, as `cache.libraries`, with a digest of everything
/// that decides what is loaded (the files of the libraries and their folders of plug-ins, by device, inode, size and
/// modification time; the loader's cache and its search path; this program). It holds as long as that is unchanged.
final class KnownLibraries: Sendable {
    private struct State {
        /// What was kept when it was read; nil if that was not yet.
        var read: Kept?
        /// What was kept last by this process.
        var written: RenderLibraries?
    }

    private struct Kept {
        /// nil if there is none.
        var libraries: RenderLibraries?
        /// Whether the same libraries would be loaded now.
        var isCurrent = false
    }

    private let renderer: any Rendering
    private let folder: String?
    private let libvips: String?
    private let threads: OwnedThreads
    private let state = Mutex(State())

    init(_ renderer: any Rendering, folder: String?, libvips: String? = nil, threads: OwnedThreads) {
        self.libvips = libvips
        self.renderer = renderer
        self.folder = folder
        self.threads = threads
    }

    /// What is known without waiting.
    var known: RenderLibraries {
        renderer.libraries ?? state.withLock { $0.read.flatMap { $0.isCurrent ? $0.libraries : nil } } ?? .unknown
    }

    /// Starts a worker, or loads the libraries, only if nothing that holds is kept. If that is not possible, what was
    /// reported last is taken, so that stored variants are found.
    func callAsFunction() async -> RenderLibraries {
        if let libraries = renderer.libraries {
            await keep(libraries)
            return libraries
        }
        let kept = await kept()
        if kept.isCurrent, let libraries = kept.libraries { return libraries }
        guard let libraries = await renderer.loadLibraries() else { return kept.libraries ?? .unknown }
        await keep(libraries)
        return libraries
    }

    // MARK: The file

    private var path: String? { folder.map { $0 + "/cache.libraries" } }
    private var head: String { "image-pipeline \(RenderRevision.rendering)" }

    private func kept() async -> Kept {
        if let read = state.withLock({ $0.read }) { return read }
        let read = await threads.run { self.read() }
        state.withLock { $0.read = read }
        return read
    }

    private func read() -> Kept {
        guard let path, let text = Self.text(path) else { return Kept() }
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0] == head, let libraries = RenderLibraries(text: lines[2]) else { return Kept() }
        return Kept(libraries: libraries, isCurrent: lines[1] == identity(libraries))
    }

    private func keep(_ libraries: RenderLibraries) async {
        let isNew = state.withLock { state in
            if state.written == libraries { return false }
            state.written = libraries
            return true
        }
        guard isNew, let folder, let path, !libraries.files.isEmpty else { return }
        await threads.run { [self] in
            let text = [head, identity(libraries), libraries.text].joined(separator: "\n")
            if Self.text(path) == text { return }
            let temporary = "\(folder)/temporary/\(getpid())-libraries"
            let file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
            // Without it, the next process finds out again.
            guard file >= 0 else { return }
            let isWritten = Array(text.utf8).withUnsafeBytes { FileIO.write($0, to: file) }
            close(file)
            if !isWritten || rename(temporary, path) != 0 { unlink(temporary) }
        }
    }

    private static func text(_ path: String) -> String? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, status.st_size < 1 << 20 else { return nil }
        return FileIO.bytes(Int(status.st_size), of: file).map { String(decoding: $0, as: UTF8.self) }
    }

    /// Of everything that decides which libraries are loaded, as it is now.
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
    /// The libraries that this pipeline renders with; they are loaded if they are not known.
    package func libraries() async -> RenderLibraries { await render.libraries() }

    /// Names of the masks and overlays in their folders, under the steps that use them.
    package func pictureNames() async -> [String: [String]] {
        await admit.threads.run { [admit] in ["mask": admit.masks.names, "overlay": admit.overlays.names] }
    }

    /// The libraries that a pipeline of this configuration would render with, without opening its caches.
    package static func libraries(of configuration: PipelineConfiguration) async -> RenderLibraries {
        let renderer = renderer(configuration, Observer(logger: configuration.logger, metrics: nil, tracer: nil))
        let threads = OwnedThreads(count: 1)
        let libraries = await KnownLibraries(renderer, folder: configuration.cacheFolder, threads: threads)()
        (renderer as? WorkerPool)?.warnOfRefusal()
        await renderer.shutdown()
        return libraries
    }
}
