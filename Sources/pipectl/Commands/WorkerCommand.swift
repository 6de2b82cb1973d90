import ArgumentParser
import Pipeline
import PipelineFleet
import PipelineSupport
import Variants

struct WorkerCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "worker",
        abstract: "Render what batches have put into a queue.",
        discussion: """
            Takes items of `pipectl batch --queue` from a stream on a Redis server, renders them and writes their outputs, to the folder or
            bucket that the batch names; sources and folders are those of this machine. Any number of workers may run. What a worker held
            that is killed is handed to another one. SIGINT and SIGTERM end it once what it renders is written.

            Examples:
              pipectl worker --queue redis://redis.example
              PIPECTL_QUEUE=rediss://:PASSWORD@redis.example/2 pipectl worker --once

            Without a URL, and for a password, it reads the settings queue (PIPECTL_QUEUE) and fleet.redis.
            """)

    @Option(
        defaultAsFlag: "", help: ArgumentHelp("The Redis server of the queue; rediss:// for TLS.", valueName: "url"))
    var queue: String?
    @Option(help: ArgumentHelp("Serve this batch alone, and end when it is done.", valueName: "id"))
    var batch: String?
    @Flag(help: "End when the queue has nothing to hand out.")
    var once = false
    @OptionGroup var verbose: VerboseOption
    @OptionGroup var common: CommonOptions

    func run() async throws {
        var configuration = try common.configuration()
        let connection = try QueueConnection.configuration(queue, configuration, isQuiet: common.quiet)
        let batch = try batch.map { text throws(CommandFailure) in try QueueConnection.batch(text, of: "--batch") }
        configuration.pipeline.longRenders = .max
        if !common.collectedSettings().isSet("retries") { configuration.pipeline.fetch.retries = 8 }
        let limit = (configuration.workers.count ?? RunConfiguration.processors) + 3
        let isQuiet = common.quiet
        var onFailure: (@Sendable (String) -> Void)?
        if verbose.isOn, !isQuiet { onFailure = { Console.error("failed: " + $0) } }
        let worker = BatchWorker(connection, batch: batch)
        defer { worker.close() }
        let done: Int = try await common.withPipeline(configuration, lookupThreads: 4) { [onFailure] pipeline in
            let run = QueueWorker(
                worker: worker, pipeline: pipeline, limit: limit, isOnce: once, onFailure: onFailure)
            return try await run()
        }
        if !isQuiet { Console.error("\(Readable.count(done, "entry", "entries")) done") }
    }
}
