import Pipeline

extension CacheTierConformance {
    static let bodies: [Check] = [
        Check("bodies of any length come back byte for byte") { bench in
            for length in [0, 1, 4_096, 32_767, 32_768, 32_769, 8_000_000] {
                let body = sample(length, seed: length)
                let original = record("http://a/\(length)", body)
                let entry = variant("v\(length)", of: original.digest, body)
                try await bench.keep(original, body)
                try await bench.keep(entry, body, of: original.source)
                bench.expect(try await bench.records(original.source) == [original], "record of \(length) bytes")
                // An empty body need not be stored, because its digest identifies it.
                if length > 0 {
                    bench.expect(try await bench.body(original.digest) == body, "original of \(length) bytes")
                }
                let found = try await bench.variant(entry.key, of: original.digest)
                bench.expect(found == .init(entry: entry, body: body), "variant of \(length) bytes")
            }
        },
        Check("a look-up of the description tells whether an entry is there, without its body") { bench in
            let body = sample(50_000, seed: 1)
            let original = record("http://a/", body)
            let entry = variant("v", of: original.digest, body)
            bench.expect(try await !bench.isThere(.original(original.digest)), "an original that was never stored")
            try await bench.keep(original, body)
            try await bench.keep(entry, body, of: original.source)
            if case .original(nil)? = try await bench.tier.find(.original(original.digest), .description) {
            } else {
                bench.expect(false, "the description of an original")
            }
            let found = try await bench.tier.find(.variant(entry.key, of: original.digest), .description)
            if case .variant(entry, body: nil)? = found {} else { bench.expect(false, "the description of a variant") }
        },
        Check("what was never stored is a miss") { bench in
            let none = digest([1])
            bench.expect(try await bench.records("http://a/").isEmpty, "records")
            bench.expect(try await bench.body(none) == nil, "original")
            bench.expect(try await bench.variant(none, of: none) == nil, "variant")
            try await bench.store(.freshenedRecord(record("http://a/", [1])))
            bench.expect(try await bench.records("http://a/").isEmpty, "freshening stores no record")
            try await bench.store(.removedRecord(record("http://a/", [])))
            let purged = try await bench.tier.purge(EntrySelection(sources: ["http://a/"]))
            bench.expect(purged.records == 0 && purged.variants == 0, "a purge of nothing removes nothing")
        },
        Check("a variant is found only with the original it was made from") { bench in
            let entry = variant("v", of: digest([1]), [1, 2])
            try await bench.keep(entry, [1, 2], of: nil)
            bench.expect(try await bench.variant(entry.key, of: digest([2])) == nil, "another original")
            bench.expect(try await bench.variant(entry.key, of: digest([1])) != nil, "its original")
        },
        Check("the second under a key takes the place of the first") { bench in
            for length in [10, 200_000] {
                for round in 0..<3 {
                    let body = sample(length + round, seed: round)
                    try await bench.keep(record("http://a/", body), body)
                    try await bench.keep(variant("v", of: digest([]), body), body, of: nil)
                    bench.expect(try await bench.records("http://a/").map(\.digest) == [digest(body)], "record")
                    bench.expect(try await bench.body(digest(body)) == body, "body")
                    bench.expect(try await bench.variant(key("v"), of: digest([]))?.body == body, "variant")
                }
            }
            bench.expect(try await bench.tier.statistics().variants.entries == 1, "one variant is counted")
        },
        Check("a call stores all its changes, in order") { bench in
            let (one, two) = (sample(100, seed: 1), sample(100_000, seed: 2))
            let removed = record("http://a/", one, selecting: ["accept": "x"])
            try await bench.store(
                .original(removed, body: .bytes(one)), .original(record("http://a/", two), body: .bytes(two)),
                .removedRecord(removed),
                .variant(variant("v", of: digest(two), one), body: one, source: "http://a/"))
            bench.expect(try await bench.records("http://a/").map(\.digest) == [digest(two)], "records")
            bench.expect(try await bench.variant(key("v"), of: digest(two)) != nil, "variant")
        },
        Check("many may read and write at once") { bench in
            let bodies = (0..<20).map { sample($0 % 4 == 0 ? 80_000 : 2_000, seed: $0) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for task in 0..<4 {
                    group.addTask {
                        for round in 0..<60 {
                            let number = (round * 3 + task) % 20
                            let body = bodies[number]
                            let entry = variant("\(number)", of: digest(body), body)
                            let original = record("http://\(number)/", body)
                            if round % 17 == 16 {
                                _ = try await bench.tier.purge(EntrySelection(sources: [original.source]))
                            }
                            if let found = try await bench.variant(entry.key, of: entry.originalDigest) {
                                bench.expect(found == .init(entry: entry, body: body), "another variant")
                            } else {
                                try await bench.keep(original, body)
                                try await bench.keep(entry, body, of: original.source)
                            }
                            if let read = try await bench.body(original.digest) {
                                bench.expect(read == body, "another body")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
            let statistics = try await bench.tier.statistics()
            bench.expect(statistics.variants.entries > 0, "nothing is left")
            bench.expect(statistics.variants.corrupt == 0 && statistics.originals.corrupt == 0, "damage is counted")
        },
    ]
}
