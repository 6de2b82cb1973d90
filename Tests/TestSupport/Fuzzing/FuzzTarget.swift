import Glibc

/// A parser that is tested with almost valid bytes. No parser may trap. `check` adds requirements of the parser.
public struct FuzzTarget: Sendable, CustomStringConvertible {
    /// The target's name for `scripts/fuzz`. The target's seeds are in `fuzz/corpus/NAME`.
    public let name: String
    private let seeds: [[UInt8]]
    private let words: [String]
    private let limit: Int
    private let check: @Sendable ([UInt8]) -> String?

    /// - Parameters:
    ///   - seeds: Examples in addition to the corpus.
    ///   - words: Byte sequences that have a meaning for the parser.
    ///   - limit: The maximum length of an input, in bytes.
    ///   - check: Returns the problem that an input reveals, or nil if the parser handled it correctly.
    public init(
        _ name: String, seeds: [[UInt8]] = [], words: [String] = [], limit: Int = 4096,
        check: @escaping @Sendable ([UInt8]) -> String?
    ) {
        self.name = name
        self.seeds = seeds
        self.words = words
        self.limit = limit
        self.check = check
    }

    public var description: String { name }

    /// The number of inputs if the plan specifies none. All tests together then take about one second for them.
    private static let usualCount = 300
    /// The maximum CPU time per input, in seconds. Checked only in timed runs and for single inputs. An input that
    /// exceeds the limit is repeated.
    private static let longest = 0.1

    /// Runs the target according to the plan. Returns the problem and the file that reproduces it, or nil if no problem
    /// was found.
    public func run(_ plan: FuzzPlan = .current) -> String? {
        guard plan.includes(name) else { return nil }
        if let path = plan.input {
            guard let bytes = FuzzFiles.read(path) else { return "\(path) cannot be read" }
            return problem(bytes, isTimed: true).map { "\(name): \($0), with \(path)" }
        }
        let file = FuzzInputFile(name)
        let mutator = Mutator(
            seeds: seeds + FuzzFiles.corpus(name), words: words.map { Array($0.utf8) }, limit: limit)
        let end = plan.seconds.map { Self.now(CLOCK_MONOTONIC) + $0 }
        let count = end == nil ? plan.count ?? Self.usualCount : Int.max
        var made: UInt64 = 0
        while made < count {
            if let end, made % 16 == 0, Self.now(CLOCK_MONOTONIC) >= end { break }
            var random = FuzzRandom(seed: plan.seed &* 0x1_0000_0001 &+ made)
            let bytes = mutator.input(&random)
            file.write(bytes)
            if let problem = problem(bytes, isTimed: end != nil) {
                return "\(name): \(problem), with input \(made) of seed \(plan.seed), kept in \(file.path); "
                    + "scripts/fuzz \(name) --input \(file.path)"
            }
            made += 1
        }
        file.remove()
        if end != nil { print("fuzz \(name): \(made) inputs of seed \(plan.seed), nothing found") }
        return nil
    }

    private func problem(_ bytes: [UInt8], isTimed: Bool) -> String? {
        var taken = Double.infinity
        for _ in 0..<(isTimed ? 3 : 1) {
            let began = Self.now(CLOCK_THREAD_CPUTIME_ID)
            if let problem = check(bytes) { return problem }
            taken = min(taken, Self.now(CLOCK_THREAD_CPUTIME_ID) - began)
            if taken <= Self.longest || !isTimed { return nil }
        }
        return "\(bytes.count) bytes take \(Int(taken * 1000)) ms of CPU"
    }

    private static func now(_ clock: clockid_t) -> Double {
        var time = timespec()
        clock_gettime(clock, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}

extension [UInt8] {
    /// The bytes as a string, with replacement characters for invalid UTF-8.
    public var fuzzText: String { String(decoding: self, as: UTF8.self) }

    /// The lines of the string.
    public var fuzzLines: [String] {
        split(separator: 0x0A, omittingEmptySubsequences: false).map { String(decoding: $0, as: UTF8.self) }
    }
}
