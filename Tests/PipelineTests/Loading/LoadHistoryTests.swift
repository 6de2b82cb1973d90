import HTTPCaching
import PipelineCaching
import TestSupport
import Testing
import Variants

@testable import Pipeline

extension LoadEvent {
    /// Its name, and numbers if it has some.
    var text: String {
        switch self {
        case .cached(let response): response.isStale ? "cached, stale" : "cached"
        case .fetching: "fetching"
        case .progress(let received, let expected): "progress \(received)/\(expected.map(String.init) ?? "?")"
        case .rendering: "rendering"
        case .finished(.success): "finished"
        case .finished(.failure(let error)): "failed: \(error.code)"
        }
    }

    /// Its place among the others.
    var place: Int {
        switch self {
        case .cached: 0
        case .fetching: 1
        case .progress: 2
        case .rendering: 3
        case .finished: 4
        }
    }

    static let someResponse: ImageResponse = {
        let response = StoredResponse(status: 200, fields: [], requestTime: 0, responseTime: 0)
        let record = OriginalRecord(
            source: "a", response: response, digest: "d", length: 1, header: nil, fetchMilliseconds: 0, finalURL: nil)
        return ImageResponse(bytes: [], format: .png, width: 1, height: 1, record: record, outcome: .memory)
    }()
}

/// The names of a load's events, as one reader gets them; numbers of `progress` are left out, and repeats of it.
func names(of load: LoadTask) async -> [String] {
    var names: [String] = []
    for await event in load.events {
        let name = event.text.split(separator: " ").first.map(String.init) ?? ""
        if names.last != name { names.append(name) }
    }
    return names
}

@Suite struct LoadHistoryTests {
    private static let start = ContinuousClock.now

    private static func told(_ place: inout LoadHistory.Position, _ history: LoadHistory) -> [String] {
        var told: [String] = []
        while let event = place.next(in: history) { told.append(event.text) }
        return told
    }

    @Test func `progress is told at most five times a second, and the last of it always`() {
        var history = LoadHistory()
        var place = LoadHistory.Position()
        var told: [String] = []
        _ = history.take(.fetching(hadCached: false), at: Self.start)
        for step in 1...1000 {
            let isNew = history.take(
                .progress(received: step, expected: 1000), at: Self.start + .milliseconds(step))
            let new = Self.told(&place, history)
            #expect(isNew == new.contains("progress \(step)/1000"))
            told += new
            #expect(history.status.received == step)
        }
        _ = history.take(.rendering, at: Self.start + .milliseconds(1001))
        told += Self.told(&place, history)
        #expect(
            told == ["fetching"] + [1, 201, 401, 601, 801].map { "progress \($0)/1000" }
                + ["progress 1000/1000", "rendering"])
    }

    @Test func `a late reader receives every event, and the last progress only`() {
        var history = LoadHistory()
        _ = history.take(.cached(LoadEvent.someResponse), at: Self.start)
        _ = history.take(.fetching(hadCached: true), at: Self.start)
        for second in 1...3 {
            _ = history.take(.progress(received: second, expected: 3), at: Self.start + .seconds(second))
        }
        var place = LoadHistory.Position()
        #expect(Self.told(&place, history) == ["cached", "fetching", "progress 3/3"])
        _ = history.take(.finished(.failure(.cancelled)), at: Self.start + .seconds(4))
        #expect(Self.told(&place, history) == ["failed: cancelled"] && place.isAtEnd)
        var last = LoadHistory.Position()
        #expect(Self.told(&last, history) == ["cached", "fetching", "progress 3/3", "failed: cancelled"])
    }

    /// Whatever comes in, in whatever order, and whenever readers begin and look.
    @Test(arguments: 0..<1000) func `any schedule keeps the order and ends once`(seed: Int) {
        var random = FuzzRandom(seed: UInt64(seed))
        var history = LoadHistory()
        var now = Self.start
        var readers: [(place: LoadHistory.Position, told: [LoadEvent])] = []
        let result: [Result<ImageResponse, PipelineError>] = [
            .success(LoadEvent.someResponse), .failure(PipelineError(.notFound, "no")),
        ]
        func read(_ index: Int) {
            while let event = readers[index].place.next(in: history) { readers[index].told.append(event) }
        }
        for step in 0..<40 {
            now += .milliseconds(random.below(150))
            let before = history.status
            let isNew: Bool
            switch random.below(10) {
            case 0: isNew = history.take(.cached(LoadEvent.someResponse), at: now)
            case 1: isNew = history.take(.fetching(hadCached: true), at: now)
            case 2...5: isNew = history.take(.progress(received: step, expected: nil), at: now)
            case 6: isNew = history.take(.rendering, at: now)
            case 7 where step > 20: isNew = history.take(.finished(result[random.below(2)]), at: now)
            case 8 where step > 20: isNew = history.end(.cancelled, at: now)
            default:
                readers.append((LoadHistory.Position(), []))
                isNew = false
            }
            #expect(history.status.phase >= before.phase)
            if before.result != nil { #expect(!isNew && history.status.phase == .finished) }
            for index in readers.indices where random.below(2) == 0 { read(index) }
            // A reader without a pending event waits exactly if there is no new one.
            for reader in readers where !reader.place.isAtEnd {
                var later = reader.place
                #expect(reader.place.isDue(in: history) == (later.next(in: history) != nil))
            }
        }
        _ = history.take(.finished(result[0]), at: now)
        for index in readers.indices { read(index) }
        for (place, told) in readers {
            let places = told.map(\.place)
            #expect(place.isAtEnd && places == places.sorted() && places.last == 4)
            for once in [0, 1, 3, 4] { #expect(places.count { $0 == once } <= 1) }
            if history.status.cached != nil { #expect(places.first == 0) }
            if history.status.received > 0, case .progress(let received, _)? = told.last(where: { $0.place == 2 }) {
                #expect(received == history.status.received)
            }
        }
        #expect(
            history.status.isCancelled
                == (history.status.result.map {
                    if case .failure(let error) = $0 { error.code == .cancelled } else { false }
                } ?? false))
    }
}
