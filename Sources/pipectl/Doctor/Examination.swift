import Glibc
import ImageServerNIO
import Pipeline
import PipelineSupport
import Variants

/// Checks the requirements of the program on this machine with the current settings: libraries, formats, sandbox
/// restrictions and limits.
struct Examination {
    let configuration: RunConfiguration

    func findings() async throws -> [Finding] {
        let settings = try configuration.pipelineConfiguration()
        return [kernel, machine, openFiles] + (await rendering(settings)) + [cacheFolder(settings)]
            + fetching + (await places(settings))
    }

    // MARK: System

    private var kernel: Finding {
        var name = utsname()
        uname(&name)
        let release = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        let found = "Linux \(release)"
        do throws(LocalFile.Failure) {
            _ = try OpenFolder("root", at: "/", followsLinks: false)
        } catch {
            return .lacks(
                "kernel", found + ", openat2 is not available",
                cost: "`serve FOLDER` and folders in `baseURLs` do not work",
                remedy: "use Linux 5.6 or newer; in a container, use a seccomp profile that allows openat2")
        }
        guard MachineMemory.reportsPressure else {
            return .lacks(
                "kernel", found + ", memory pressure information (PSI) is not available",
                cost: "the memory caches do not shrink when other programs need memory",
                remedy: "use a kernel with CONFIG_PSI (add psi=1 to its command line); in a container, make "
                    + "memory.pressure writable; or reduce memory.originals and memory.variants")
        }
        return .works("kernel", found)
    }

    private var machine: Finding {
        let found =
            Readable.count(RunConfiguration.processors, "processor", "processors")
            + ", \(Readable.bytes(MachineMemory.bytes)) of memory for this process"
        guard MachineMemory.bytes < 512 << 20 else { return .works("machine", found) }
        return .lacks(
            "machine", found, cost: "large pictures are refused, or the kernel kills the process that renders them",
            remedy: "provide at least 512 MB, and another 512 MB for every two render workers")
    }

    private var openFiles: Finding {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return .works("open files", "the limit is unknown")
        }
        // The server raises its own limit up to the hard limit.
        let most = Int(clamping: limit.rlim_max)
        let needed = FileLimit(files: most, for: configuration).needed(for: configuration.listener.connections)
        guard most < needed else { return .works("open files", "at most \(most)") }
        return .lacks(
            "open files", "at most \(most)",
            cost: "`pipectl serve` accepts fewer than \(configuration.listener.connections) clients",
            remedy:
                "raise the limit with `ulimit -Hn \(needed)` (systemd: LimitNOFILE, containers: --ulimit nofile), or reduce "
                + "server.connections")
    }

    // MARK: Rendering

    /// A GIF with one pixel.
    private static let picture: [UInt8] = [
        0x47, 0x49, 0x46, 0x38, 0x39, 0x61, 1, 0, 1, 0, 0x80, 0, 0, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0x2C, 0, 0, 0, 0, 1, 0,
        1, 0, 0,
        2, 2, 0x44, 1, 0, 0x3B,
    ]

    private func rendering(_ settings: PipelineConfiguration) async -> [Finding] {
        var settings = settings
        settings.cacheFolder = nil
        settings.fleet = nil
        settings.remote = nil
        settings.rendering.limits.formats.insert(.gif)
        let pipeline: ImagePipeline
        let protection: WorkerProtection?
        do throws(PipelineError) {
            pipeline = try ImagePipeline(settings)
        } catch {
            return [.fails("libvips", error.message, cost: "no pictures can be rendered", .renderFailed)]
        }
        do throws(PipelineError) {
            try await pipeline.prepareWorkers()
            protection = pipeline.workerProtection
        } catch {
            await pipeline.shutdown()
            return [
                .fails(
                    error.code == .libraryUnavailable ? "libvips" : "render workers", error.message,
                    cost: "no variants can be rendered; cached variants are still served", .renderFailed)
            ]
        }
        let libraries = await pipeline.libraries()
        var findings = [Finding.works("libraries", "\(libraries)"), locks(protection)]
        findings += formats(libraries, settings)
        for format in libraries.written.sorted(by: { $0.rawValue < $1.rawValue }) {
            guard let failure = await renders(format, pipeline) else { continue }
            // If there are no workers, this is the first use of the library.
            if failure.state == .fails { findings = [] }
            findings.append(failure)
            if failure.state == .fails { break }
        }
        await pipeline.shutdown()
        return findings
    }

    private func locks(_ protection: WorkerProtection?) -> Finding {
        guard let protection else {
            return .lacks(
                "worker sandbox", "none: render.isolation is inProcess",
                cost:
                    "a picture that crashes a decoder terminates the program, and a malicious picture could gain all of its permissions",
                remedy: "set render.isolation=workers")
        }
        if protection.missing.isEmpty { return .works("worker sandbox", "\(protection)") }
        return .lacks(
            "worker sandbox", "\(protection)",
            cost: "a malicious picture that takes over a decoder is confined only by the other restrictions",
            remedy: "grant the permissions that docs/running.md lists for Docker, Podman, Kubernetes and systemd")
    }

    private func formats(_ libraries: RenderLibraries, _ settings: PipelineConfiguration) -> [Finding] {
        func list(_ formats: Set<ImageFormat>) -> String { formats.map(\.rawValue).sorted().joined(separator: " ") }
        let read = settings.rendering.limits.formats.intersection(libraries.read)
        var findings = [Finding.works("formats", "reads \(list(read)); writes \(list(libraries.written))")]
        findings += libraries.missing(decoding: settings.rendering.limits.formats).map { sentence in
            let parts = sentence.split(separator: ": ", maxSplits: 1)
            return .lacks(
                "formats", String(parts[0]),
                cost: "originals and outputs in this format are refused, and `auto` does not choose the format",
                remedy: parts.count > 1 ? String(parts[1]) : "")
        }
        let lines = HEIFNotice.lines(
            version: libraries.libheif, formats: read, isTrusted: configuration.trustsHEIF)
        if lines.count > 1 {
            findings.append(
                // Distributions fix vulnerabilities without a new version, so an old version causes only a warning.
                .warns(
                    "libheif", libraries.libheif ?? "unknown version",
                    cost:
                        "a malicious picture can run code in a render worker, confined by the sandbox (GHSA-g89c-p67h-r497)",
                    remedy:
                        "install libheif \(HEIFNotice.floor.map(String.init).joined(separator: ".")) or newer, or set "
                        + "heif.trusted=true if your distribution has patched it"))
        }
        return findings
    }

    /// Renders a picture and decodes the result. Returns nil if this succeeds.
    private func renders(_ format: ImageFormat, _ pipeline: ImagePipeline) async -> Finding? {
        func failure(_ message: String) -> Finding {
            .lacks(
                "formats", "\(format.rawValue) files cannot be written: \(message)",
                cost: "outputs in this format fail",
                remedy: "use a different output, or update the libraries of the distribution")
        }
        do {
            let recipe = try Recipe("thumbnail:8,\(format.rawValue)")
            let request = ImageRequest(.bytes(Self.picture, name: "sample"), recipe: recipe)
            let response = try await pipeline.respond(to: request)
            return response.width > 0 ? nil : failure("the result has no pixels")
        } catch let error as PipelineError {
            guard error.code == .libraryUnavailable else { return failure(error.message) }
            return .fails("libvips", error.message, cost: "no pictures can be rendered", .renderFailed)
        } catch {
            return failure("\(error)")
        }
    }

    // MARK: Caches and origins

    private func cacheFolder(_ settings: PipelineConfiguration) -> Finding {
        guard let folder = settings.cacheFolder else { return .works("cache folder", "none; only memory is used") }
        let space: (free: Int, floor: Int)?
        do throws(StoreError) {
            let store = try DiskStore(folder: folder, configuration: settings.disk)
            space = store.freeSpace()
            store.close()
        } catch {
            return .fails(
                "cache folder", error.description, cost: "only the commands `recipes` and `settings` work",
                remedy: "set --cache DIR or XDG_CACHE_HOME to a folder that this user can write to", .cacheUnavailable)
        }
        let mounts = try? FileText.read("/proc/self/mountinfo", limit: 4 << 20)
        let kind = FileSystemKind(holding: AtomicOutput.resolved(folder) ?? folder, mounts: mounts ?? "")
        let found =
            folder + (space.map { ", \(Readable.bytes($0.free)) free" } ?? "") + (kind.map { ", \($0.name)" } ?? "")
        if let kind, let cost = kind.cost {
            return .lacks(
                "cache folder", found, cost: cost, remedy: "set --cache DIR to a folder on a local disk or a volume")
        }
        if let space, space.free < space.floor {
            return .lacks(
                "cache folder", found, cost: "nothing is stored, because less than disk.freeSpace is free",
                remedy: "free some space, or reduce disk.freeSpace")
        }
        return .works("cache folder", found)
    }

    private var fetching: [Finding] {
        guard let version = FetchLibrary.version else {
            return [
                .fails(
                    "libcurl", "not installed", cost: "nothing can be fetched; only local files work as sources",
                    remedy: "install libcurl4 (Debian 12) or libcurl4t64 (Debian 13)", .fetchFailed)
            ]
        }
        // The configured file comes first, then the default of Debian and curl, then the defaults of other
        // distributions.
        let files = [
            configuration.pipeline.fetch.authoritiesFile, "/etc/ssl/certs/ca-certificates.crt",
            "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem",
        ].compactMap { $0 }
        let library = Finding.works("libcurl", version)
        guard let file = files.first(where: { access($0, R_OK) == 0 }) else {
            return [
                library,
                .lacks(
                    "certificates", "no file with certificate authorities was found",
                    cost: "requests to https origins fail",
                    remedy: "install ca-certificates"),
            ]
        }
        return [library, .works("certificates", file)]
    }
}
