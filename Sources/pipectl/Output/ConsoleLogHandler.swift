import Logging

/// Writes the library's warnings to stderr, as messages of the program or, in a server, as lines of its log.
struct ConsoleLogHandler: LogHandler {
    var metadata: Logger.Metadata = [:]
    var metadataProvider: Logger.MetadataProvider?
    var logLevel = Logger.Level.warning

    subscript(metadataKey key: String) -> Logger.MetadataValue? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { Console.error("pipectl: \(event.message)") }
}

extension Console {
    static let logger = Logger(label: "pipectl") { _ in ConsoleLogHandler() }
}
