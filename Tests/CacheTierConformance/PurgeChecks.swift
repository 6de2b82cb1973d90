import Pipeline

extension CacheTierConformance {
    static let purges: [Check] = [
        Check("a purge removes a source with its variants and nothing else") { bench in
            for length in [100, 100_000] {
                let bodies = ["a": sample(length, seed: 1), "b": sample(length, seed: 2)]
                for (name, body) in bodies {
                    try await bench.keep(record("http://\(name)/", body), body)
                    for number in 0..<3 {
                        let small = sample(length + number, seed: number)
                        try await bench.keep(
                            variant("\(name)\(number)", of: digest(body), small), small, of: "http://\(name)/")
                    }
                }
                let result = try await bench.tier.purge(EntrySelection(sources: ["http://a/"]))
                let (a, b) = (digest(bodies["a"] ?? []), digest(bodies["b"] ?? []))
                bench.expect(result.digests.contains(a), "the digests that the source has had")
                bench.expect(try await bench.records("http://a/").isEmpty, "records of the source")
                bench.expect(try await bench.records("http://b/").count == 1, "records of another source")
                bench.expect(try await bench.body(a) == nil, "the body")
                bench.expect(try await bench.body(b) == bodies["b"], "another body")
                for number in 0..<3 {
                    bench.expect(try await bench.variant(key("a\(number)"), of: a) == nil, "its variants")
                    let other = try await bench.variant(key("b\(number)"), of: b)
                    bench.expect(other?.body == sample(length + number, seed: number), "variants of another source")
                }
            }
        },
        Check("a purge takes variants of every digest the source has had") { bench in
            let entry = variant("old", of: digest([1]), [1, 2])
            try await bench.keep(record("http://a/", [1]), [1])
            try await bench.keep(entry, [1, 2], of: "http://a/")
            try await bench.keep(record("http://a/", [2]), [2])
            _ = try await bench.tier.purge(EntrySelection(sources: ["http://a/"]))
            bench.expect(try await bench.variant(entry.key, of: digest([1])) == nil, "a variant of former bytes")
        },
        Check("a purge takes variants of digests that only the caller knows") { bench in
            let entry = variant("v", of: digest([1]), [1, 2])
            try await bench.keep(entry, [1, 2], of: nil)
            _ = try await bench.tier.purge(EntrySelection(sources: ["http://a/"], digests: [digest([1])]))
            bench.expect(try await bench.variant(entry.key, of: digest([1])) == nil, "the variant")
        },
        Check("equal bytes under two keys stay with one when the other goes") { bench in
            for length in [10, 200_000] {
                let body = sample(length, seed: 1)
                for (number, name) in ["http://a/", "http://b/"].enumerated() {
                    let own = sample(5, seed: number)
                    try await bench.keep(record(name, own), own)
                    try await bench.keep(variant(name, of: digest(own), body), body, of: name)
                }
                _ = try await bench.tier.purge(EntrySelection(sources: ["http://a/"]))
                let gone = try await bench.variant(key("http://a/"), of: digest(sample(5, seed: 0)))
                let left = try await bench.variant(key("http://b/"), of: digest(sample(5, seed: 1)))
                bench.expect(gone == nil && left?.body == body, "\(length) bytes")
            }
        },
        Check("a purge of a prefix removes what begins so") { bench in
            let shared = sample(100, seed: 1)
            for (number, name) in ["http://a/1", "http://a/2", "http://b/1"].enumerated() {
                try await bench.keep(record(name, shared), shared)
                let own = sample(100, seed: 10 + number)
                try await bench.keep(record(name + "/own", own), own)
                try await bench.keep(variant(name, of: digest(own), [1, 2]), [1, 2], of: name + "/own")
            }
            _ = try await bench.tier.purge(EntrySelection(prefixes: ["http://a/"]))
            for name in ["http://a/1", "http://a/2/own"] {
                bench.expect(try await bench.records(name).isEmpty, "records of \(name)")
            }
            let gone = try await bench.variant(key("http://a/1"), of: digest(sample(100, seed: 10)))
            let left = try await bench.variant(key("http://b/1"), of: digest(sample(100, seed: 12)))
            bench.expect(gone == nil && left?.body == [1, 2], "variants")
            bench.expect(try await bench.body(digest(shared)) == shared, "a body that another source's record names")
            try await bench.keep(record("http://a/3", shared), shared)
            bench.expect(try await bench.records("http://a/3").count == 1, "what is stored afterwards")
        },
        Check("a soft purge leaves no record unmarked, and a purge of variants no variant") { bench in
            let (a, b) = (sample(100, seed: 1), sample(100, seed: 2))
            let entry = variant("v", of: digest(b), b)
            for (name, body) in [("http://a/", a), ("http://b/", b)] { try await bench.keep(record(name, body), body) }
            _ = try await bench.tier.purge(EntrySelection(sources: ["http://a/"], mode: .soft))
            let left = try await bench.records("http://a/")
            bench.expect(left.allSatisfy(\.response.isSoftPurged), "a record that is fresh")
            bench.expect(try await bench.records("http://b/").contains { !$0.response.isSoftPurged }, "another source")
            try await bench.keep(entry, b, of: "http://b/")
            _ = try await bench.tier.purge(EntrySelection(sources: ["http://b/"], mode: .variantsOnly))
            bench.expect(try await bench.variant(entry.key, of: entry.originalDigest) == nil, "the variant")
        },
    ]
}
