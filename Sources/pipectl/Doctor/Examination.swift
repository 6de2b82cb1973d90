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
                "kernel", found + ", without openat2", cost: "`serve FOLDER` and folders in `baseURLs` do not work",
                remedy: "Linux 5.6 or newer; in a container, a seccomp profile that permits openat2")
        }
        guard MachineMemory.tellsPressure else {
            return .lacks(
                "kernel", found + ", without notice of memory pressure",
                cost: "memory caches keep their size when other programs need the memory",
                remedy: "a kernel with CONFIG_PSI (psi=1 on its command line); in a container, a writable "
                    + "memory.pressure, or smaller budgets: memory.originals, memory.variants")
        }
        return .works("kernel", found)
    }

    private var machine: Finding {
        let found =
            Readable.count(RunConfiguration.processors, "processor", "processors")
            + ", \(Readable.bytes(MachineMemory.bytes)) of memory for this process"
        guard MachineMemory.bytes < 512 << 20 else { return .works("machine", found) }
        return .lacks(
            "machine", found, cost: "large pictures are refused, or the system kills a process that renders one",
            remedy: "512 MB or more, and as much again for each two render workers")
    }

    private var openFiles: Finding {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return .works("open files", "the limit is not known")
        }
        // The server raises its own limit up to the hard limit.
        let most = Int(clamping: limit.rlim_max)
        let needed = FileLimit(files: most, for: configuration).needed(for: configuration.listener.connections)
        guard most < needed else { return .works("open files", "at most \(most)") }
        return .lacks(
            "open files", "at most \(most)",
            cost: "`serve` takes fewer clients than \(configuration.listener.connections)",
            remedy: "`ulimit -Hn \(needed)` (systemd: LimitNOFILE, containers: --ulimit nofile), or fewer "
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
            return [.fails("libvips", error.message, cost: "nothing is rendered", .renderFailed)]
        }
        do throws(PipelineError) {
            try await pipeline.prepareWorkers()
            protection = pipeline.workerProtection
        } catch {
            await pipeline.shutdown()
            return [
                .fails(
                    error.code == .libraryUnavailable ? "libvips" : "render workers", error.message,
                    cost: "no variant can be rendered; cached ones are still served", .renderFailed)
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
                "worker locks", "none: render.isolation is inProcess",
                cost: "a picture that crashes a decoder ends the program, and one that takes it over has all it may do",
                remedy: "render.isolation=workers")
        }
        if protection.missing.isEmpty { return .works("worker locks", "\(protection)") }
        return .lacks(
            "worker locks", "\(protection)",
            cost: "a picture that takes over a decoder is held by the other locks alone",
            remedy: "docs/running.md lists the permissions for Docker, Podman, Kubernetes and systemd")
    }

    private func formats(_ libraries: RenderLibraries, _ settings: PipelineConfiguration) -> [Finding] {
        func list(_ formats: Set<ImageFormat>) -> String { formats.map(\.rawValue).sorted().joined(separator: " ") }
        let read = settings.rendering.limits.formats.intersection(libraries.read)
        var findings = [Finding.works("formats", "reads \(list(read)); writes \(list(libraries.written))")]
        findings += libraries.missing(decoding: settings.rendering.limits.formats).map { sentence in
            let parts = sentence.split(separator: ": ", maxSplits: 1)
            return .lacks(
                "formats", String(parts[0]),
                cost: "such originals or outputs are refused with an error, and `auto` leaves the format out",
                remedy: parts.count > 1 ? String(parts[1]) : "")
        }
        let lines = HEIFNotice.lines(
            version: libraries.libheif, formats: read, isTrusted: configuration.trustsHEIF)
        if lines.count > 1 {
            findings.append(
                // Distributions fix vulnerabilities without a new version, so an old version causes only a warning.
                .warns(
                    "libheif", libraries.libheif ?? "of an unknown version",
                    cost: "a picture can run code in a render worker (GHSA-g89c-p67h-r497); its locks confine it",
                    remedy: "libheif \(HEIFNotice.floor.map(String.init).joined(separator: ".")) or newer, or "
                        + "heif.trusted=true if your distribution has patched it"))
        }
        return findings
    }

    /// Renders a picture and decodes the result. Returns nil if this succeeds.
    private func renders(_ format: ImageFormat, _ pipeline: ImagePipeline) async -> Finding? {
        func failure(_ message: String) -> Finding {
            .lacks(
                "formats", "a \(format.rawValue) cannot be made: \(message)", cost: "outputs of this format fail",
                remedy: "another output, or the distribution's current libraries")
        }
        do {
            let recipe = try Recipe("thumbnail:8,\(format.rawValue)")
            let request = ImageRequest(.bytes(Self.picture, name: "sample"), recipe: recipe)
            let response = try await pipeline.respond(to: request)
            return response.width > 0 ? nil : failure("it has no pixels")
        } catch let error as PipelineError {
            guard error.code == .libraryUnavailable else { return failure(error.message) }
            return .fails("libvips", error.message, cost: "nothing is rendered", .renderFailed)
        } catch {
            return failure("\(error)")
        }
    }

    // MARK: Caches and origins

    private func cacheFolder(_ settings: PipelineConfiguration) -> Finding {
        guard let folder = settings.cacheFolder else { return .works("cache folder", "none: memory alone") }
        let space: (free: Int, floor: Int)?
        do throws(StoreError) {
            let store = try DiskStore(folder: folder, configuration: settings.disk)
            space = store.freeSpace()
            store.close()
        } catch {
            return .fails(
                "cache folder", error.description, cost: "no command but `recipes` and `settings` works",
                remedy: "--cache DIR, or XDG_CACHE_HOME: a folder that this user may write", .cacheUnavailable)
        }
        let mounts = try? FileText.read("/proc/self/mountinfo", limit: 4 << 20)
        let kind = FileSystemKind(holding: AtomicOutput.resolved(folder) ?? folder, mounts: mounts ?? "")
        let found =
            folder + (space.map { ", \(Readable.bytes($0.free)) free" } ?? "") + (kind.map { ", \($0.name)" } ?? "")
        if let kind, let cost = kind.cost {
            return .lacks("cache folder", found, cost: cost, remedy: "--cache DIR on a local disk or a volume")
        }
        if let space, space.free < space.floor {
            return .lacks(
                "cache folder", found, cost: "nothing is stored: disk.freeSpace is left free",
                remedy: "a larger file system, or a smaller disk.freeSpace")
        }
        return .works("cache folder", found)
    }

    private var fetching: [Finding] {
        guard let version = FetchLibrary.version else {
            return [
                .fails(
                    "libcurl", "it is missing", cost: "nothing is fetched; local files alone are sources",
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
                    "certificates", "there are none", cost: "every origin with https fails",
                    remedy: "install ca-certificates"),
            ]
        }
        return [library, .works("certificates", file)]
    }
}
