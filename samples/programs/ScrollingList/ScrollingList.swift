import Glibc
import Pipeline
import Synchronization

/// A photo library with a thousand pictures, which are taken from a few files. Counts how often it is queried.
final class PhotoLibrary: OriginalProvider {
    static let count = 1_000
    let files: [String]
    let asked = Atomic(0)

    init(files: [String]) { self.files = files }

    func original(_ path: String, unless version: String?) -> ProvidedOriginal {
        guard let number = Int(path), (0..<Self.count).contains(number) else { return .missing }
        asked.add(1, ordering: .relaxed)
        return .file(files[number % files.count], version: "1", maxAge: .seconds(3600))
    }
}

/// A row on the screen, which shows a different picture whenever it is reused.
@MainActor final class Row {
    /// The number of the row's picture; nil before the first use.
    private(set) var number: Int?
    /// The visible picture; nil if the row shows the placeholder.
    private(set) var picture: ImageResponse?
    private var load: LoadTask?

    func show(_ number: Int, in list: ScrollingList) {
        self.number = number
        let request = list.request(number)
        // This call does not suspend, so a picture in memory never flickers.
        picture = list.pipeline.cachedImage(for: request)
        load = nil
        if picture != nil { return list.fromMemory += 1 }
        // The load of the row's previous picture is not cancelled. The loader drops that load if too many are in
        // progress.
        let load = list.loader.load(request)
        self.load = load
        list.waiting.append(
            Task {
                // If a load failed or was superseded, the placeholder stays.
                guard let response = try? await load.response else { return }
                list.loaded += 1
                // The row may have been reused for a different picture in the meantime.
                if self.load == load { picture = response }
            })
    }
}

/// A scrolling list without a screen.
@MainActor final class ScrollingList {
    let pipeline: ImagePipeline
    let loader: ImageLoader
    var (fromMemory, loaded) = (0, 0)
    private(set) var prefetched: Set<Int> = []
    /// One task per load of a row that `waitUntilIdle` has not waited for.
    var waiting: [Task<Void, Never>] = []
    private let rows = (0..<12).map { _ in Row() }
    private let recipe: Recipe
    private var ahead: [Int: LoadTask] = [:]

    init(_ pipeline: ImagePipeline) throws {
        self.pipeline = pipeline
        recipe = try Recipe("thumbnail:64x64:fill,png")
        var configuration = LoaderConfiguration()
        configuration.maxConcurrentLoads = 4
        configuration.newestFirst = true
        configuration.maxWaiting = rows.count
        loader = ImageLoader(pipeline, configuration)
    }

    /// The positions that the list can be scrolled to.
    var places: ClosedRange<Int> { 0...PhotoLibrary.count - rows.count }

    func request(_ number: Int) -> ImageRequest { ImageRequest(.url("photos:\(number)"), recipe: recipe) }

    /// Shows the pictures beginning with `first`.
    func scroll(to first: Int) {
        for number in first..<first + rows.count where rows[number % rows.count].number != number {
            rows[number % rows.count].show(number, in: self)
        }
    }

    /// Prefetches the pictures that will be visible next, and cancels the prefetching of all others.
    func prefetch(_ numbers: Range<Int>) {
        let numbers = numbers.clamped(to: 0..<PhotoLibrary.count)
        let missing = numbers.filter { ahead[$0] == nil && pipeline.cachedImage(for: request($0)) == nil }
        for (number, load) in zip(missing, loader.prefetch(missing.map(request))) { ahead[number] = load }
        for (number, load) in ahead where !numbers.contains(number) {
            ahead[number] = nil
            // Keep the load if a row now shows the picture.
            if !rows.contains(where: { $0.number == number }) { load.cancel() }
        }
        prefetched.formUnion(missing)
    }

    /// Waits until all loads of rows have finished.
    func waitUntilIdle() async {
        while let task = waiting.popLast() { await task.value }
    }

    /// The number of rows that show the placeholder or the wrong picture.
    var wrong: Int {
        rows.count { row in
            guard let number = row.number, let picture = row.picture else { return true }
            return picture.digest != pipeline.cachedImage(for: request(number))?.digest
        }
    }
}

/// Scrolls through a thousand pictures: `scrolling-list FILE…`.
@main
@MainActor struct Scrolling {
    static func main() async throws {
        let files = Array(CommandLine.arguments.dropFirst())
        guard !files.isEmpty else {
            print("usage: scrolling-list FILE…")
            exit(2)
        }
        let library = PhotoLibrary(files: files)
        var configuration = PipelineConfiguration()
        configuration.providers["photos"] = library
        let pipeline = try ImagePipeline(configuration)
        let list = try ScrollingList(pipeline)
        // Scroll quickly to the end. No load begins until the list stops, and most pictures have left the screen by
        // that time.
        list.loader.suspend()
        for place in list.places { list.scroll(to: place) }
        list.loader.resume()
        await list.waitUntilIdle()
        // Scroll back slowly, and prefetch the next two screens.
        let back = list.places.reversed().prefix(240)
        for place in back {
            list.scroll(to: place)
            list.prefetch(place - 24..<place)
            await list.waitUntilIdle()
        }
        // Scroll down again. The pictures are now in memory.
        for place in back.reversed() { list.scroll(to: place) }
        await list.waitUntilIdle()

        print("shown from memory: \(list.fromMemory)")
        print("loaded: \(list.loaded)")
        print("superseded: \(list.loader.statistics.superseded)")
        print("prefetched: \(list.prefetched.count)")
        print("originals asked for: \(library.asked.load(ordering: .relaxed))")
        print("rows that show another picture: \(list.wrong)")
        list.loader.cancelAll()
        await pipeline.shutdown()
    }
}
