import Pipeline

extension CacheTierConformance {
    static let records: [Check] = [
        Check("records are kept without bodies") { bench in
            let bodiless = record("http://none/", sample(1_000, seed: 7))
            try await bench.keep(bodiless, nil)
            bench.expect(try await bench.records(bodiless.source) == [bodiless], "the record")
            bench.expect(try await bench.body(bodiless.digest) == nil, "a body from nowhere")
        },
        Check("selections of a source are kept side by side, newest first") { bench in
            var all: [OriginalRecord] = []
            for number in 0..<12 {
                let body = sample(number, seed: number)
                all.append(
                    record(
                        "http://a/", body, selecting: ["accept": "\(number)", "dpr": nil],
                        time: Double(100 + (number * 7) % 12)))
                try await bench.keep(all[number], body)
            }
            var again = all[11]
            again.response.fields = [HeaderField("Age", "1")]
            try await bench.keep(again, sample(11, seed: 11))
            let found = try await bench.records("http://a/")
            let times = found.map(\.response.responseTime)
            bench.expect(found.count == 12 && times == times.sorted(by: >), "all, newest first")
            bench.expect(found.contains(again) && !found.contains(all[11]), "one selection in place of the same")
            bench.expect(found.allSatisfy { $0 == again || all.contains($0) }, "records as they were stored")
            let gone = found[3]
            try await bench.store(.removedRecord(gone))
            let left = try await bench.records("http://a/")
            bench.expect(left.count == 11 && !left.contains(gone), "one selection is removed")
        },
        Check("a provisional record is kept beside the picture that it may replace") { bench in
            let (old, new) = (sample(100, seed: 1), sample(200, seed: 2))
            let picture = record("http://a/", old, selecting: ["accept": "x"], time: 11)
            var provisional = record("http://a/", new, selecting: ["accept": "x"], time: 12)
            provisional.isProvisional = true
            try await bench.keep(picture, old)
            try await bench.keep(provisional, new)
            bench.expect(try await bench.records("http://a/") == [provisional, picture], "both, newest first")
            try await bench.store(.removedRecord(provisional))
            bench.expect(try await bench.records("http://a/") == [picture], "the picture alone")
        },
        Check("freshening changes a record and keeps its body") { bench in
            for length in [100, 100_000] {
                let body = sample(length, seed: 2)
                var original = record("http://a/\(length)", body)
                try await bench.keep(original, body)
                original.response.fields = [HeaderField("Age", "3"), HeaderField("X", "ü")]
                original.response.responseTime = 99
                try await bench.store(.freshenedRecord(original))
                bench.expect(try await bench.records(original.source) == [original], "the record")
                bench.expect(try await bench.body(original.digest) == body, "the body")
            }
        },
        Check("variants outlive the record of their original") { bench in
            let body = sample(100, seed: 1)
            let entry = variant("v", of: digest(body), [1, 2])
            try await bench.keep(record("http://a/", body), body)
            try await bench.keep(entry, [1, 2], of: "http://a/")
            try await bench.store(.removedRecord(record("http://a/", [])))
            bench.expect(try await bench.records("http://a/").isEmpty, "the record")
            bench.expect(try await bench.variant(entry.key, of: digest(body)) != nil, "the variant")
        },
        Check("sources may be of any text and any length") { bench in
            let body = sample(10, seed: 1)
            let sources = [
                "", " ", "'; DROP TABLE records; --", "http://ü/日本/🌊?%00", "a\u{0}b", "a", "../../etc/passwd",
                String(repeating: "long/", count: 20_000),
            ]
            for (number, source) in sources.enumerated() {
                var one = record(source, body, selecting: ["accept-language": "日本\u{0}"])
                one.fetchMilliseconds = Double(number)
                try await bench.keep(one, body)
            }
            for (number, source) in sources.enumerated() {
                let found = try await bench.records(source)
                bench.expect(found.map(\.fetchMilliseconds) == [Double(number)], "source \(number)")
            }
            _ = try await bench.tier.purge(EntrySelection(sources: ["a"]))
            bench.expect(try await bench.records("a\u{0}b").count == 1, "a NUL does not end a name")
        },
    ]
}
