import Logging

/// Writes the library's warnings to stderr as messages of the program, or as log lines in a server.
struct ConsoleLogHandler: LogHandler {
    let console: Console
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { console.error("pipectl: \(event.message)") }
}

extension Console {
    var logger: Logger { Logger(label: "pipectl") { _ in ConsoleLogHandler(console: self) } }
}
