import ImageServer
import ImageServerNIO
import Pipeline
import PipelineSupport

/// Applies changed settings to a running server, on SIGHUP.
struct ServerReload: Sendable {
    let pipeline: ImagePipeline
    let servers: [HTTPServer]
    /// The sockets that were passed at startup.
    let passed: [Int32]
    /// The configuration at startup. A reload keeps its readiness, metrics, loop guard and token.
    let site: ServerConfiguration
    /// The current settings.
    private(set) var settings: Settings

    /// Reads the settings again and applies the changes that a reload supports. If the settings contain an error, no
    /// setting changes.
    ///
    /// - Returns: Messages for the operator, one per line.
    mutating func callAsFunction(_ read: () -> Settings) -> [(text: String, level: LogLine.Level)] {
        do {
            let changed = read()
            let merged = settings.taking(SettingCatalog.reloaded, from: changed)
            var (configuration, site) = try merged.serving(passed)
            (site.readiness, site.metrics, site.loop) = (self.site.readiness, self.site.metrics, self.site.loop)
            site.accessToken = self.site.accessToken
            let next = try Site(pipeline: pipeline, settings: site, now: { SystemClock.unix.seconds })
            for server in servers { server.reload(next, configuration.listener) }
            let names = settings.changes(in: merged)
            settings = merged
            let waiting = settings.changes(in: changed)
            var lines = [
                (names.isEmpty ? "reloaded" : "reloaded: \(names.joined(separator: ", "))", LogLine.Level.info)
            ]
            lines += AccessNotice.warnings(site, configuration).map { ($0, .warning) }
            if !waiting.isEmpty {
                let names = waiting.joined(separator: ", ")
                lines.append(("pipectl: these changes take effect only after a restart: \(names)", .warning))
            }
            return lines
        } catch {
            let reason = CommandFailure(error)?.message ?? "\(error)"
            return [("pipectl: not reloaded; the previous settings remain in force: \(reason)", .error)]
        }
    }
}
