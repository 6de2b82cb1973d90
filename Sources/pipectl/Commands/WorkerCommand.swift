import ArgumentParser
import Pipeline
import PipelineFleet
import PipelineSupport
import Variants

struct WorkerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "Render the batches in a queue.",
        discussion: """
            Receives the items of `pipectl batch --queue` from a stream on a Redis server, renders them, and writes the outputs to the folder or
            bucket that the batch names. Paths refer to files on this machine. Any number of workers can run. If a worker is
            killed, another worker receives its items. After SIGINT or SIGTERM, a worker finishes its current items and exits.

            A worker renders only entries that are signed with its key (the setting queueKey, PIPECTL_QUEUE_KEY). Without --output,
            entries can write only to buckets. Without --sources, entries can read only URLs.

            Examples:
              pipectl worker --queue redis://redis.example --output s3://small/
              pipectl worker --output /srv/small --sources /srv/photos --once

            The default URL and the password come from the settings queue (PIPECTL_QUEUE) and fleet.redis.
            """)

    @Option(
        defaultAsFlag: "", help: ArgumentHelp("The Redis server of the queue; rediss:// for TLS.", valueName: "url"))
    var queue: String?
    @Option(help: ArgumentHelp("Process only this batch, and exit when it is finished.", valueName: "id"))
    var batch: String?
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Folder or s3://BUCKET/PREFIX to which entries may write; repeatable.", valueName: "dir"),
        completion: .directory)
    var output: [String] = []
    @Option(
        parsing: .singleValue,
        help: ArgumentHelp(
            "Folder or URL prefix from which entries may read sources; repeatable.", valueName: "place"),
        completion: .directory)
    var sources: [String] = []
    @Flag(help: "Render unsigned entries as well.")
    var unsigned = false
    @Flag(help: "Exit when the queue is empty.")
    var once = false
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        var configuration = try common.configuration()
        let connection = try QueueConnection.configuration(queue, configuration, isQuiet: common.quiet)
        let batch = try batch.map { text throws(CommandFailure) in try QueueConnection.batch(text, of: "--batch") }
        let bounds = try QueueBounds(outputs: output, sources: sources)
        let trust = QueueTrust(key: configuration.queueKey, takesUnsigned: unsigned)
        guard unsigned || trust.key != nil else {
            throw CommandFailure(
                .usage,
                "without a key, anyone who can write to Redis could control this worker: set PIPECTL_QUEUE_KEY here and for `pipectl batch "
                    + "--queue` to the output of `openssl rand -hex 32`, or use --unsigned")
        }
        configuration.pipeline.fileBounds = bounds.sourceFolders
        configuration.pipeline.rendering.longRenders = .max
        if !common.collectedSettings().isSet("retries") { configuration.pipeline.fetch.maxRetries = 8 }
        let limit = (configuration.workers.maxConcurrentRenders ?? RunConfiguration.processors) + 3
        let isQuiet = common.quiet
        var onFailure: (@Sendable (String) -> Void)?
        if verbose.isOn, !isQuiet { onFailure = { Console.error("failed: " + $0) } }
        let worker = BatchWorker(connection, batch: batch)
        defer { worker.close() }
        let done: Int = try await common.withPipeline(configuration, lookups: 4) { [onFailure] pipeline in
            let run = QueueWorker(
                worker: worker, pipeline: pipeline, bounds: bounds, trust: trust, limit: limit, isOnce: once,
                onFailure: onFailure)
            return try await run()
        }
        if !isQuiet { Console.error("\(Readable.count(done, "entry", "entries")) done") }
    }
}
