import ImageServer
import ImageServerNIO
import Pipeline
import PipelineSupport

/// Puts settings in force that have changed while the server runs: what SIGHUP asks for.
struct ServerReload {
    let pipeline: ImagePipeline
    let servers: [HTTPServer]
    /// The sockets that were passed at the start.
    let passed: [Int32]
    /// The configuration at the start, of which readiness, metrics and the guard against loops live on.
    let site: ServerConfiguration
    /// The settings in force.
    private(set) var settings: Settings

    /// Reads the settings' files again and puts in force what can be; if anything is wrong with them, nothing changes.
    ///
    /// - Returns: what to tell the operator, line by line.
    mutating func callAsFunction(_ read: () -> Settings) -> [(text: String, level: LogLine.Level)] {
        do {
            let changed = read()
            let merged = settings.taking(SettingCatalogue.reloaded, from: changed)
            var (configuration, site) = try merged.serving(passed)
            (site.readiness, site.metrics, site.loop) = (self.site.readiness, self.site.metrics, self.site.loop)
            let next = Site(pipeline: pipeline, settings: site, now: { SystemClock.unix.seconds })
            var switches: [@Sendable () -> Void] = []
            for server in servers {
                do throws(HTTPServer.StartError) {
                    switches.append(try server.reload(next, configuration.listener))
                } catch {
                    throw CommandFailure(.usage, error.message)
                }
            }
            for puts in switches { puts() }
            let names = settings.changes(in: merged)
            settings = merged
            let waiting = settings.changes(in: changed)
            var lines = [
                (names.isEmpty ? "reloaded" : "reloaded: \(names.joined(separator: ", "))", LogLine.Level.info)
            ]
            lines += AccessNotice.warnings(site, configuration).map { ($0, .warning) }
            if !waiting.isEmpty {
                let names = waiting.joined(separator: ", ")
                lines.append(("pipectl: changed, but in force after a restart only: \(names)", .warning))
            }
            return lines
        } catch {
            let reason = CommandFailure(error)?.message ?? "\(error)"
            return [("pipectl: not reloaded, the settings in force stay: \(reason)", .error)]
        }
    }
}
