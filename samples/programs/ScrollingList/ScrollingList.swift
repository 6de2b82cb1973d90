import Glibc
import Pipeline
import Synchronization
import Variants

/// A photo library of a thousand pictures, for which a few files stand. It counts how often it is asked.
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

/// One row on the screen, which shows another picture whenever it is reused.
@MainActor final class Row {
    /// The picture it is for; nil before its first use.
    private(set) var number: Int?
    /// What it shows; nil for the placeholder.
    private(set) var picture: ImageResponse?
    private var load: LoadTask?

    func show(_ number: Int, in list: ScrollingList) {
        self.number = number
        let request = list.request(number)
        // Without suspending, so that a picture in memory never flickers.
        picture = list.pipeline.cachedImage(for: request)
        load = nil
        if picture != nil { return list.fromMemory += 1 }
        // The load of the row's last picture is not cancelled: the loader's window drops it when too many are in progress.
        let load = list.loader.load(request)
        self.load = load
        list.waiting.append(
            Task {
                // A load that failed or was superseded leaves the placeholder.
                guard let response = try? await load.response else { return }
                list.loaded += 1
                // The row may be for another picture by now.
                if self.load == load { picture = response }
            })
    }
}

/// A list that scrolls, without the screen.
@MainActor final class ScrollingList {
    let pipeline: ImagePipeline
    let loader: ImageLoader
    var (fromMemory, loaded) = (0, 0)
    private(set) var prefetched: Set<Int> = []
    /// One for each load of a row that has not been waited for.
    var waiting: [Task<Void, Never>] = []
    private let rows = (0..<12).map { _ in Row() }
    private let recipe: Recipe
    private var ahead: [Int: LoadTask] = [:]

    init(_ pipeline: ImagePipeline) throws {
        self.pipeline = pipeline
        recipe = try Recipe("thumbnail:64x64:fill,png")
        var configuration = LoaderConfiguration()
        configuration.loads = 4
        configuration.order = .newestFirst
        configuration.window = rows.count
        loader = ImageLoader(pipeline, configuration)
    }

    /// Where the list can be scrolled to.
    var places: ClosedRange<Int> { 0...PhotoLibrary.count - rows.count }

    func request(_ number: Int) -> ImageRequest { ImageRequest(.url("photos:\(number)"), recipe: recipe) }

    /// Shows the pictures from `first` on.
    func scroll(to first: Int) {
        for number in first..<first + rows.count where rows[number % rows.count].number != number {
            rows[number % rows.count].show(number, in: self)
        }
    }

    /// Prefetches what will be seen next, and gives up what is no longer ahead.
    func prefetch(_ numbers: Range<Int>) {
        let numbers = numbers.clamped(to: 0..<PhotoLibrary.count)
        let missing = numbers.filter { ahead[$0] == nil && pipeline.cachedImage(for: request($0)) == nil }
        for (number, load) in zip(missing, loader.prefetch(missing.map(request))) { ahead[number] = load }
        for (number, load) in ahead where !numbers.contains(number) {
            ahead[number] = nil
            // What has come into view is used by its row.
            if !rows.contains(where: { $0.number == number }) { load.cancel() }
        }
        prefetched.formUnion(missing)
    }

    /// Waits until nothing that a row asked for is in progress.
    func settle() async {
        while let task = waiting.popLast() { await task.value }
    }

    /// Rows that show the placeholder, or a picture that is not theirs.
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
        // Flung to the end. Nothing begins until the list stops, and most pictures are gone by then.
        list.loader.suspend()
        for place in list.places { list.scroll(to: place) }
        list.loader.resume()
        await list.settle()
        // Slowly back, with the next two screens prefetched.
        let back = list.places.reversed().prefix(240)
        for place in back {
            list.scroll(to: place)
            list.prefetch(place - 24..<place)
            await list.settle()
        }
        // Down again, which memory answers.
        for place in back.reversed() { list.scroll(to: place) }
        await list.settle()

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
