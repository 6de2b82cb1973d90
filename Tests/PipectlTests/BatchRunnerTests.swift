import PipelineSupport
import Pipeline
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import pipectl

@Suite struct BatchRunnerTests {
    private func options(_ folder: ScratchFolder, _ recipes: [String] = ["circle"]) -> BatchOptions {
        var options = BatchOptions(recipes: recipes, outputFolder: folder("out")) { recipe in
            recipe == "wrong" ? .failure(BatchFailure(code: .invalidRecipe, message: "step 1")) : .success(recipe)
        }
        options.reportPath = folder("report.jsonl")
        options.galleryPath = folder("sheet.html")
        return options
    }

    @Test func `one bad item never stops the rest, and the report is in input order`() async throws {
        let folder = ScratchFolder()
        let names = (0..<40).map {
            "https://h/\($0 % 10 == 3 ? "bad" : "pic")\($0)\(String(repeating: "x", count: $0 % 5)).jpg"
        }
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options(folder))
        let summary = try await runner.run(BatchInput(arguments: names))
        #expect(summary.items == 40 && summary.failed == 4 && summary.written == 36)
        #expect(summary.failures == ["notFound": 4])
        #expect(summary.exit == .itemsFailed)
        let lines = (folder.text("report.jsonl") ?? "").split(separator: "\n").map { try? JSONParser.parse(String($0)) }
        #expect(lines.map { $0?["source"] } == names.map { .string($0) })
        #expect(folder.names("out").count == 36)
        #expect(folder.text("out/pic0.png") == "https://h/pic0.jpg|circle")
        #expect(runner.renderer.log.state.withLock(\.maxRunning) <= 4)
        #expect(runner.renderer.log.state.withLock(\.running) == 0)
    }

    @Test func `a second run leaves equal files untouched`() async throws {
        let folder = ScratchFolder()
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options(folder))
        _ = try await runner.run(BatchInput(arguments: ["https://h/a.jpg", "https://h/cached.jpg"]))
        let before = FileIdentity(path: folder("out/a.png"))
        let summary = try await runner.run(BatchInput(arguments: ["https://h/a.jpg", "https://h/cached.jpg"]))
        #expect(summary.written == 0 && summary.unchanged == 2 && summary.hits == 1 && summary.exit == .done)
        #expect(FileIdentity(path: folder("out/a.png")) == before)
    }

    @Test func `recipes of a source are adjacent and the same pair is one item`() async throws {
        let folder = ScratchFolder()
        var options = options(folder, ["circle", "@card"])
        options.concurrency = 1
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options)
        let summary = try await runner.run(
            BatchInput(arguments: ["https://h/a.jpg", "https://h/b.jpg", "https://h/a.jpg"]))
        #expect(summary.items == 4 && summary.duplicates == 2)
        // One source after the other; the recipes of one are asked for together.
        let seen = runner.renderer.log.state.withLock(\.seen)
        #expect(seen.prefix(2).sorted() == ["https://h/a.jpg|@card", "https://h/a.jpg|circle"])
        #expect(seen.suffix(2).sorted() == ["https://h/b.jpg|@card", "https://h/b.jpg|circle"])
        #expect(folder.names("out") == ["a-card.png", "a-circle.png", "b-card.png", "b-circle.png"])
    }

    @Test func `sizes above the original are rendered once and are one output`() async throws {
        let folder = ScratchFolder()
        var options = options(
            folder,
            [20, 30, 40, 60, 80].flatMap { ["thumbnail:\($0)x,webp", "thumbnail:\($0)x\($0),png"] } + ["circle"])
        options.nameTemplate = "{stem}-{width}-{recipe}.{ext}"
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options)
        let summary = try await runner.run(BatchInput(arguments: ["https://h/a.jpg"]))
        // The renderer's pictures have 30 × 20 pixels: the boxes of 30 and more hold them.
        let seen = runner.renderer.log.state.withLock(\.seen).map { $0.split(separator: "|").last ?? "" }
        #expect(
            Set(seen) == [
                "thumbnail:20x,webp", "thumbnail:80x,webp", "thumbnail:20x20,png", "thumbnail:80x80,png", "circle",
            ])
        #expect(seen.count == 5 && summary.items == 11 && summary.written == 11)
        options.nameTemplate = "{stem}-{width}.{ext}"
        options.recipes = ["thumbnail:30x,webp", "thumbnail:60x,webp", "thumbnail:80x,webp"]
        let one = try await BatchRunner(renderer: ScriptedRenderer(), options: options).run(
            BatchInput(arguments: ["https://h/b.jpg"]))
        #expect(one.written == 1 && one.repeated == 2 && one.renamed == 0, "\(one.text)")
        #expect(folder.names("out").filter { $0.hasPrefix("b") } == ["b-30.png"])
        let lines = (folder.text("report.jsonl") ?? "").split(separator: "\n").compactMap { ItemJSON(line: $0) }
        #expect(lines.map(\.output) == Array(repeating: folder("out/b-30.png"), count: 3))
        #expect(lines.map(\.written) == [true, nil, nil] && lines[2].recipe == "thumbnail:80x,webp")
    }

    @Test(arguments: ["thumbnail:40x,rotate:90,webp", "thumbnail:40x40:fill", "thumbnail:40x:up", "scaled:0.5", "webp"])
    func `recipes that do more than fit share no render`(_ recipe: String) {
        #expect(FittedBox(recipe) == nil)
    }

    @Test func `sizes of one format are not torn apart`() throws {
        let folder = ScratchFolder()
        let input = BatchInput(arguments: ["https://h/a.jpg"])
        let recipes = ["avif", "webp"].flatMap { format in (1...10).map { "thumbnail:\($0)x,\(format)" } }
        let options = options(folder, recipes)
        let producer = BatchProducer(input, options, sources: SourceGuard(input, outputFolder: options.outputFolder))
        #expect(producer.next().map(\.canonical) == recipes && producer.next().isEmpty)
    }

    @Test func `a folder that ignores case keeps each file, and the summary says how`() async throws {
        let folder = ScratchFolder()
        var options = options(folder)
        options.foldsCase = { _ in true }
        let names = ["https://h/cat.jpg", "https://h/Cat.jpg", "https://h/CAT.jpg"]
        let summary = try await BatchRunner(renderer: ScriptedRenderer(), options: options).run(
            BatchInput(arguments: names))
        let files = folder.names("out")
        #expect(Set(files.map { $0.lowercased() }).count == 3 && files.contains("cat.png"), "\(files)")
        #expect(summary.renamed == 2 && summary.exit == .done)
        #expect(summary.text.contains("2 outputs were renamed because of duplicate names: Cat.png → Cat-"))
        #expect(summary.text.contains("use --name '{stem}-{index}.{ext}' to make the names unique"), "\(summary.text)")
        #expect(!AtomicOutput.foldsCase(folder("out")) && folder.names("out") == files)
    }

    @Test func `an interrupted run leaves the manifest as it was`() async throws {
        let folder = ScratchFolder()
        var options = options(folder)
        options.manifest = ManifestOptions(path: folder.write("earlier", to: "images.json"), urlPrefix: "")
        let log = ScriptedRenderer()
        options.isInterrupted = { log.log.state.withLock { !$0.seen.isEmpty } }
        let summary = try await BatchRunner(renderer: log, options: options).run(
            BatchInput(arguments: (0..<50).map { "https://h/\($0).jpg" }))
        #expect(summary.isInterrupted && folder.text("images.json") == "earlier")
        #expect(summary.text.contains("the run was interrupted") && !folder.names().contains { $0.hasSuffix(".tmp") })
    }

    @Test func `recipes of a source come together`() throws {
        let folder = ScratchFolder()
        let input = BatchInput(arguments: ["https://h/a.jpg", "https://h/b.jpg"])
        let options = options(folder, ["circle", "wrong", "@card", "circle"])
        let producer = BatchProducer(input, options, sources: SourceGuard(input, outputFolder: options.outputFolder))
        for _ in 0..<2 {
            let items = producer.next()
            #expect(items.map(\.canonical) == ["circle", "wrong", "@card"])
            #expect(items.map { $0.failure == nil } == [true, false, true])
        }
        #expect(producer.next().isEmpty && producer.duplicates == 2)
    }

    @Test func `a source of many recipes comes in portions`() throws {
        let folder = ScratchFolder()
        let input = BatchInput(arguments: ["https://h/a.jpg"])
        let options = options(folder, (0..<35).map { "r\($0)" })
        let producer = BatchProducer(input, options, sources: SourceGuard(input, outputFolder: options.outputFolder))
        var portions: [[BatchItem]] = []
        while case let items = producer.next(), !items.isEmpty { portions.append(items) }
        #expect(portions.map(\.count) == [16, 16, 3])
        #expect(portions[2].map(\.canonical) == ["r32", "r33", "r34"])
    }

    @Test func `all recipes of a source are on their way before the first is there`() async throws {
        /// Waits for company, but not for ever.
        final class Meeting: BatchRendering {
            let arrived = Mutex(0)

            func render(source: BatchSource, recipe: String) async -> BatchOutcome {
                arrived.withLock { $0 += 1 }
                var turns = 0
                while arrived.withLock({ $0 < 3 }), turns < 100_000 {
                    await Task.yield()
                    turns += 1
                }
                return .failure(BatchFailure(code: .init(rawValue: turns < 100_000 ? "met" : "alone"), message: recipe))
            }
        }
        let folder = ScratchFolder()
        var options = options(folder, ["a", "b", "c"])
        options.concurrency = 1
        let summary = try await BatchRunner(renderer: Meeting(), options: options).run(
            BatchInput(arguments: ["https://h/a.jpg"]))
        #expect(summary.failures == ["met": 3])
    }

    @Test func `manifests replace recipes and names, and their mistakes are items`() async throws {
        let folder = ScratchFolder()
        let manifest = folder.write(
            "source,name,recipes\na.jpg,own.png,\nb.jpg,../../escape.png,\nc.jpg,,wrong\nd.jpg,,x;y\n\"e\n", to: "m.csv"
        )
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options(folder))
        let summary = try await runner.run(BatchInput(arguments: [manifest]))
        #expect(summary.failures == ["badName": 1, "invalidRecipe": 1, "badManifestLine": 1])
        #expect(folder.names("out") == ["d-x.png", "d-y.png", "own.png"])
        #expect(!folder.names().contains("escape.png"))
    }

    @Test func `without any recipe an item fails and says so`() async throws {
        let folder = ScratchFolder()
        let summary = try await BatchRunner(renderer: ScriptedRenderer(), options: options(folder, []))
            .run(BatchInput(arguments: ["a.jpg"]))
        #expect(summary.failures == ["noRecipe": 1])
    }

    @Test func `an interruption keeps what is done and ends with 130`() async throws {
        let folder = ScratchFolder()
        let asked = Counter()
        var options = options(folder)
        options.isInterrupted = { asked.next() > 20 }
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options)
        let summary = try await runner.run(BatchInput(arguments: (0..<1000).map { "https://h/\($0).jpg" }))
        #expect(summary.isInterrupted && summary.exit == .interrupted)
        #expect(summary.items > 0 && summary.items < 1000)
        #expect(summary.written == summary.items && folder.names("out").count == summary.items)
        #expect(folder.text("sheet.html")?.contains("interrupted") == true)
    }

    @Test func `a batch that could not keep its results never begins`() async {
        let folder = ScratchFolder()
        folder.write("x", to: "file")
        let renderer = ScriptedRenderer()
        var unwritable = options(folder)
        unwritable.outputFolder = folder("file/out")
        await expectStart(unwritable, renderer, .outputFailed)
        var template = options(folder)
        template.nameTemplate = "{stam}"
        await expectStart(template, renderer, .usage)
        var report = options(folder)
        report.reportPath = folder("absent/report.jsonl")
        await expectStart(report, renderer, .outputFailed)
        #expect(renderer.log.state.withLock(\.seen).isEmpty)
    }

    private func expectStart(_ options: BatchOptions, _ renderer: ScriptedRenderer, _ exit: ProgramExit) async {
        do {
            _ = try await BatchRunner(renderer: renderer, options: options).run(BatchInput(arguments: ["a.jpg"]))
            Issue.record("the batch began")
        } catch {
            #expect(error.exit == exit)
        }
    }

    @Test func `the contact sheet is self-contained, escaped and lists failures`() async throws {
        let folder = ScratchFolder()
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options(folder))
        _ = try await runner.run(BatchInput(arguments: ["https://h/<b>&\"'.jpg", "https://h/bad.jpg"]))
        let html = folder.text("sheet.html") ?? ""
        #expect(html.contains("&lt;b&gt;&amp;&quot;&#39;"))
        #expect(!html.contains("<b>&"))
        #expect(html.contains("&lt;404&gt; for https://h/bad.jpg"))
        #expect(html.contains("href=\"out/") && html.contains("src=\"out/") && !html.contains("data:"))
        #expect(!html.contains("<script") && !html.contains("<link"))
        #expect(html.hasSuffix("</html>\n"))
    }

    @Test func `a long contact sheet is one page with each card once`() throws {
        let folder = ScratchFolder()
        let gallery = try Gallery(path: folder("out/sheet.html"), title: "Sheet", groupsBySource: true)
        for number in 0..<1_900 {
            var item = ItemJSON(source: "https://h/\(number / 2).jpg", recipe: "circle", outcome: .rendered)
            item.output = number == 1 ? "s3://bucket/1.png" : folder("out/\(number).png")
            item.format = "png"
            let isFailed = number % 19 == 0 || number >= 1_800
            if isFailed {
                item.outcome = .failed
                item.error = BatchFailure(code: .notAnImage, message: "broken")
            }
            let variant = BatchVariant(bytes: [7], fileExtension: "png", mediaType: "image/png", item: item)
            try gallery.add(BatchOutput(line: item, variant: isFailed ? nil : variant))
        }
        var summary = BatchSummary()
        summary.items = 1_900
        summary.outcomes = [.rendered: 1_705, .failed: 195]
        try gallery.finish(&summary)
        #expect(folder.names("out") == ["sheet.html"])
        let html = try #require(folder.text("out/sheet.html"))
        #expect(html.ranges(of: "<section").count == html.ranges(of: "</section>").count)
        #expect(html.ranges(of: "<figure>").count == 1_705)
        #expect(html.ranges(of: "<figure class=\"failed\">").count == 95 + 50)
        // Browsers cannot read a bucket.
        #expect(html.ranges(of: "src=\"data:image/png;base64,").count == 1)
        #expect(html.contains("<b>1900</b>items") && html.contains("<a href=\"#broken\">failed</a>, of 145 sources"))
        #expect(html.contains("id=\"broken\""))
    }

    @Test func `a broken source has one card, after the good ones, and the counts add up`() async throws {
        let folder = ScratchFolder()
        let runner = BatchRunner(renderer: ScriptedRenderer(), options: options(folder, ["circle", "blur:2"]))
        let summary = try await runner.run(
            BatchInput(arguments: [
                "https://h/bad1.jpg", "https://h/a.jpg", "https://h/bad2.jpg", "https://h/cached.jpg",
            ]))
        let html = folder.text("sheet.html") ?? ""
        #expect(html.ranges(of: "<figure class=\"failed\">").count == 2 && html.ranges(of: "<figure>").count == 4)
        let last = try #require(html.ranges(of: "<figure>").last)
        let first = try #require(html.firstRange(of: "<figure class=\"failed\">"))
        #expect(last.lowerBound < first.lowerBound && html.contains("<code>2 recipes</code>"))
        let numbers = html.matches(of: /<li[^>]*><b>(\d+)<\/b>/).compactMap { Int($0.1) }
        #expect(numbers == [8, 2, 2, 4] && summary.items == 8, "\(numbers)")
        #expect(html.contains("<a href=\"#broken\">failed</a>, of 2 sources"))
    }

    @Test func `progress goes to its descriptor and is cleared`() async throws {
        let folder = ScratchFolder()
        let target = open(folder.write("", to: "terminal"), O_WRONLY)
        defer { close(target) }
        var options = options(folder)
        options.progressDescriptor = target
        options.total = 3
        _ = try await BatchRunner(renderer: ScriptedRenderer(), options: options).run(
            BatchInput(arguments: ["a", "b", "c"]))
        let text = folder.text("terminal") ?? ""
        #expect(text.contains("1/3 33%"))
        #expect(text.hasSuffix(ProgressLine.clear))
    }

    @Test func `summaries speak to people and programs`() throws {
        var summary = BatchSummary()
        summary.items = 3
        summary.outcomes = [.rendered: 2, .failed: 1]
        summary.failures = ["notFound": 1]
        summary.seconds = 1.5
        #expect(summary.text.contains("rendered 2") && summary.text.contains("1 × notFound"))
        let value = try JSONParser.parse(summary.json)
        #expect(value["outcomes"]?["rendered"] == .int(2) && value["seconds"] == .double(1.5))
    }
}

/// Counts how often it was asked.
final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    func next() -> Int { count.wrappingAdd(1, ordering: .relaxed).newValue }
}

@Suite struct BatchScheduleTests {
    private static func item(_ number: Int) -> BatchItem {
        BatchItem(
            source: BatchSource(source: "\(number)"), index: number, written: "png", canonical: "png",
            hasSeveralRecipes: false)
    }

    private static let failure = BatchOutcome.failure(BatchFailure(code: .notFound, message: "gone"))

    private func name(of action: BatchSchedule.Action?) -> String {
        switch action {
        case .pull?: "pull"
        case .name(let number, _, _)?: "name \(number)"
        case .finish(let output)?: "finish \(output.line.source)"
        case nil: "wait"
        }
    }

    @Test func `items are named and finished in input order, and few are held while an early one renders`() throws {
        var schedule = BatchSchedule(concurrency: 2)
        var first: BatchSchedule.Render?
        for number in 0..<8 {
            #expect(name(of: schedule.next()) == "pull")
            let started = schedule.pulled([Self.item(number)], [{ Self.failure }])
            if number == 0 {
                first = started.first
            } else {
                schedule.rendered(try #require(started.first), Self.failure)
            }
        }
        // Eight items wait for the first.
        #expect(name(of: schedule.next()) == "wait")
        schedule.rendered(try #require(first), Self.failure)
        for number in 0..<8 {
            #expect(name(of: schedule.next()) == "name \(number)")
            schedule.written(
                7 - number, BatchOutput(line: ItemJSON(source: "\(7 - number)", recipe: "", outcome: .failed)))
        }
        var finished: [String] = []
        schedule.end()
        while let action = schedule.next() { finished.append(name(of: action)) }
        #expect(finished == (0..<8).map { "finish \($0)" })
    }

    @Test func `no source is pulled while one is pulled, too many render, or nothing can be rendered`() throws {
        var schedule = BatchSchedule(concurrency: 1)
        #expect(name(of: schedule.next()) == "pull" && name(of: schedule.next()) == "wait")
        let started = schedule.pulled([Self.item(0)], [{ Self.failure }])
        #expect(name(of: schedule.next()) == "wait")
        let cause = BatchFailure(code: .workersUnavailable, message: "none")
        schedule.rendered(try #require(started.first), .failure(cause))
        #expect(name(of: schedule.next()) == "name 0" && name(of: schedule.next()) == "wait")
        #expect(schedule.blockingFailure == cause)
    }
}
