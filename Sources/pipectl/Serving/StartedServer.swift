import ImageServer
import ImageServerNIO
import Pipeline

/// The environment of a server. Tests that start servers within the test process replace it.
struct ServerHost: Sendable {
    var console = Console.own
    var environment = CommonOptions.environment()
    /// Whether servers share event loops, which run until the program exits. Defaults to false.
    var sharesLoops = false
}

/// A running server.
struct StartedServer: Sendable {
    var changes: ServerReload
    let drainSeconds: Double
    let console: Console
    /// Reads the current settings.
    let read: @Sendable () -> Settings

    /// How long to wait at shutdown for responses in progress, and then again for pending writes to the stores.
    private static let shutdownTimeout = Duration.seconds(10)

    /// Reads the settings again, applies them and logs the changes.
    mutating func reload() {
        for line in changes(read) { console.error(line.text, line.level) }
    }

    /// Stops after the requests in progress have finished, and writes pending data to the stores.
    ///
    /// - Parameter isQuiet: Whether to suppress log messages about interrupted requests or writes.
    func stop(isQuiet: Bool) async {
        changes.site.readiness.end()
        // Load balancers need time to notice this. The task is never cancelled, and a second signal terminates the
        // program.
        if drainSeconds > 0 { try? await Task.sleep(for: .seconds(drainSeconds)) }
        let isFinished = await withTaskGroup(of: Bool.self) { group in
            for server in changes.servers { group.addTask { await server.stop(timeout: Self.shutdownTimeout) } }
            return await group.reduce(true) { $0 && $1 }
        }
        if !isFinished, !isQuiet {
            console.error(
                "pipectl: stopped before all responses were finished, because they took longer than ten seconds")
        }
        let pipeline = changes.pipeline
        if !(await Timeout.run(Self.shutdownTimeout, for: { await pipeline.shutdown() })), !isQuiet {
            console.error("pipectl: stopped before all pending data was stored; it will be fetched and rendered again")
        }
    }
}
