@testable import HTTPCaching
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(20))) struct OriginalAnswersTests {
    @Test(arguments: [200, 203, 204, 299, 300, 400, 404, 410, 418, 499, 500, 501, 503, 599, 600, 700, 999])
    func `any final status comes back verbatim, with every field in order`(status: Int) async throws {
        try await withCache { _ in
            ScriptedResponse(
                status, "X-One: 1", "Set-Cookie: a=1", "Cache-Control: max-age=60", "Set-Cookie: b=2",
                "ETag: \"t\"", "x-one: 2", body: "body")
        } _: { bench in
            for round in 0..<2 {
                let response = try await bench.get()
                #expect(response.status == status && response.text == "body")
                #expect(
                    response.fields.map(\.name) == [
                        "X-One", "Set-Cookie", "Cache-Control", "Set-Cookie", "ETag", "x-one", "Date",
                    ])
                #expect(response.values("set-cookie") == ["a=1", "b=2"])
                #expect(response.handling.isHit == (round == 1))
                #expect(response.age == (round == 1 ? .zero : nil))
            }
            #expect(bench.count == 1)
        }
    }

    @Test func `a 203 with a picture is a picture, and is stored (RFC 9110 §15.3.4)`() async throws {
        let bytes = sample("originals/night-tiny.jpg")
        try await withCache { _ in
            var answer = ScriptedResponse(203, "Cache-Control: max-age=60")
            answer.body = bytes
            return answer
        } _: { bench in
            let first = try await bench.image("thumbnail:20")
            #expect(first.width == 20 && first.originalOutcome == .network)
            #expect(try await bench.image("thumbnail:10").originalOutcome == .memory)
            #expect(try await bench.get().status == 203)
            #expect(bench.count == 1)
        }
    }

    @Test func `the handling of a miss, a hit and a validation is told in the words of RFC 9211`() async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == nil
                ? ScriptedResponse(200, "Cache-Control: max-age=60", "ETag: \"t\"", "Age: 10", body: "b")
                : ScriptedResponse(304)
        } _: { bench in
            let miss = try await bench.get()
            #expect(miss.handling.fieldValue() == "pipeline; fwd=uri-miss; ttl=50; stored")
            #expect(miss.age == nil)
            bench.clock.advance(20)
            let hit = try await bench.get()
            #expect(hit.handling.fieldValue() == "pipeline; hit; ttl=30; detail=memory")
            #expect(hit.age == .seconds(30) && hit.responseTime == bench.clock.now - 20)
            bench.clock.advance(40)
            let validated = try await bench.get()
            #expect(validated.handling.fieldValue() == "pipeline; fwd=stale; fwd-status=304; ttl=60; stored")
            #expect(validated.age == .seconds(0) && validated.text == "b" && validated.status == 200)
        }
    }

    @Test func `a hit from the disk says so`() async throws {
        let folder = CacheFolder()
        try await withCache {
            $0.cacheFolder = folder.path
        } origin: { _ in
            ScriptedResponse(404, "Cache-Control: max-age=60", "Vary: Accept", body: "no")
        } _: { bench in
            _ = try await bench.get("Accept: a")
            let other = try await bench.another()
            let response = try await other.original(for: bench.request(["Accept: a"]))
            await other.shutdown()
            #expect(response.handling.detail == "disk" && response.status == 404 && response.text == "no")
            #expect(bench.count == 1)
        }
    }

    @Test(arguments: [
        ("Cache-Control: no-store", "no-store"), ("Cache-Control: private", "private"), ("Vary: *", "vary-*"),
    ])
    func `what may not be stored is told with the reason, and asked for again`(field: String, reason: String)
        async throws
    {
        try await withCache { _ in
            ScriptedResponse(200, field, "Expires: Sun, 06 Nov 2094 08:49:37 GMT")
        } _: { bench in
            for _ in 0..<2 {
                let response = try await bench.get()
                #expect(response.handling.detail == reason && !response.handling.isStored)
                #expect(response.handling.forward == .uriMiss && response.handling.timeToLive == nil)
            }
            #expect(bench.count == 2)
        }
    }

    @Test func `fields that are private reach the client they came for, and no later one`() async throws {
        let door = Door()
        try await withCache { _ in
            await door.pass()
            return ScriptedResponse(200, "Cache-Control: max-age=60, private=\"x-mine\"", "X-Mine: 1", "X-All: 2")
        } _: { bench in
            let both = [
                Task { try await bench.get() }, Task { try await bench.get() },
            ]
            await bench.waiting(2)
            door.open()
            let answers = [try await both[0].value, try await both[1].value]
            #expect(answers.count { $0.values("x-mine") == ["1"] } == 1)
            let hit = try await bench.get()
            #expect(hit.handling.isHit && hit.values("x-mine").isEmpty && hit.values("x-all") == ["2"])
            #expect(bench.count == 1)
        }
    }

    @Test func `a request's own no-store is obeyed, and what is stored still answers`() async throws {
        try await withCache { _ in
            ScriptedResponse(200, "Cache-Control: max-age=60", body: "b")
        } _: { bench in
            let unstored = try await bench.get("Cache-Control: no-store")
            #expect(!unstored.handling.isStored)
            #expect(try await bench.get().handling.isStored)
            #expect(try await bench.get("Cache-Control: no-store").handling.isHit)
            #expect(bench.count == 2)
        }
    }

    @Test func `types that are not accepted never pass, whatever the status`() async throws {
        try await withCache {
            $0.acceptedTypes = ["image/*"]
        } origin: { request in
            switch request.url.name {
            case "a": ScriptedResponse(200, "Content-Type: text/html", "Cache-Control: max-age=60", body: "<p>")
            case "b": ScriptedResponse(404, "Content-Type: text/html", "Cache-Control: max-age=60", body: "<p>")
            default: ScriptedResponse(404, "Content-Type: image/png", body: "p")
            }
        } _: { bench in
            #expect(await bench.refusal { $0.url = "http://origin.test/a" }?.code == .notAnImage)
            #expect(await bench.refusal { $0.url = "http://origin.test/b" }?.code == .notFound)
            let accepted = try await bench.get(url: "http://origin.test/c")
            #expect(accepted.text == "p")
        }
    }

    @Test(arguments: [
        "binary/octet-stream", "text/plain", "text/html", "image/jpeg, text/plain", "\"image/jpeg\"", "image/jpeg",
    ])
    func `a picture is one whatever its label, unless the types are set, and raw responses keep theirs`(
        type: String
    ) async throws {
        let usual = PipelineConfiguration().acceptedTypes
        for types in [usual, ["image/*"]] {
            try await withCache {
                $0.acceptedTypes = types
            } origin: { _ in
                ScriptedResponse(200, "Content-Type: \(type)", "Cache-Control: max-age=60").picture("night-tiny.jpg")
            } _: { bench in
                let isAccepted = type == "image/jpeg"
                if isAccepted {
                    _ = try await bench.get()
                } else {
                    #expect(await bench.refusal()?.code == .notAnImage)
                }
                guard isAccepted || types == usual else {
                    let refused = await bench.imageRefusal()
                    #expect(refused?.code == .notAnImage)
                    return
                }
                let image = try await bench.image()
                #expect(image.outcome == .rendered)
                #expect(try await bench.image().outcome == .memory)
                #expect(bench.count == 1)
            }
        }
    }

    @Test func `a type with a comma is several, and lines are too: all of them have to be accepted`() async throws {
        let types = [
            ["image/png, text/html"], ["text/html, image/png"], ["image/png;a=\"b, text/html"],
            ["image/png", "text/html"],
            ["text/html", "image/png"],
        ]
        try await withCache {
            $0.acceptedTypes = ["image/*"]
        } origin: { request in
            var answer = ScriptedResponse(200, body: "p")
            let lines = Int(request.url.name).map { types[$0] } ?? ["image/png; a=\"b, c\", image/gif"]
            answer.fields = lines.map { HeaderField("Content-Type", $0) }
            return answer
        } _: { bench in
            for index in types.indices {
                let error = await bench.refusal { $0.url = "http://origin.test/\(index)" }
                #expect(error?.code == .notAnImage && error?.message.contains("text/html") == true, "\(types[index])")
            }
            let accepted = try await bench.get(url: "http://origin.test/images")
            #expect(accepted.text == "p")
        }
    }

    @Test func `a client's conditions and range stay here, unless they are to be passed on`() async throws {
        try await withCache { request in
            request.fields.first("range") != nil
                ? ScriptedResponse(206, "Content-Range: bytes 0-0/2", "Cache-Control: max-age=60", body: "b")
                : ScriptedResponse(200, "Cache-Control: max-age=60", "ETag: \"t\"", body: "bo")
        } _: { bench in
            let part = try await bench.get("Range: bytes=0-0", "X-Other: 1") { $0.forwardsConditionals = true }
            #expect(part.status == 206 && part.text == "b" && !part.handling.isStored)
            #expect(bench.sent("x-other") == "1")
            let whole = try await bench.get("Range: bytes=0-0", "If-None-Match: \"x\"")
            #expect(whole.status == 200 && whole.text == "bo" && whole.handling.isStored)
            #expect(bench.sent("range") == nil && bench.sent("if-none-match") == nil)
            let stored = try await bench.get("Range: bytes=0-0") { $0.forwardsConditionals = true }
            #expect(stored.status == 200 && stored.handling.isHit)
            bench.clock.advance(90)
            _ = try await bench.get("If-None-Match: \"x\"") { $0.forwardsConditionals = true }
            #expect(bench.sent("if-none-match") == "\"t\"")
        }
    }

    @Test(arguments: [304, 412, 416])
    func `answers to passed on conditions are for that request alone`(status: Int) async throws {
        try await withCache { request in
            request.fields.first("if-none-match") == "\"mine\""
                ? ScriptedResponse(status, "Cache-Control: max-age=60", "ETag: \"mine\"")
                : ScriptedResponse(200, "Cache-Control: max-age=60", body: "whole")
        } _: { bench in
            let mine = try await bench.get("If-None-Match: \"mine\"") { $0.forwardsConditionals = true }
            #expect(mine.status == status && !mine.handling.isStored)
            #expect(try await bench.get().text == "whole")
            #expect(bench.count == 2)
        }
    }

    @Test func `an image is made from a 200 alone, and a stored refusal answers for as long as the origin said`()
        async throws
    {
        try await withCache { _ in
            ScriptedResponse(404, "Cache-Control: max-age=60", "Content-Type: image/png", body: "gone")
        } _: { bench in
            #expect(await bench.imageRefusal()?.code == .notFound)
            #expect(await bench.imageRefusal()?.code == .notFound)
            let gone = try await bench.get()
            #expect(gone.text == "gone")
            #expect(bench.count == 1)
            bench.clock.advance(61)
            bench.origin.answers { _ in ScriptedResponse(200, "Cache-Control: max-age=60").picture() }
            #expect(try await bench.image().outcome == .rendered)
            #expect(bench.count == 2)
        }
    }

    @Test func `a refusal without freshness of its own is asked for again, a guess does not make it last`() async throws
    {
        try await withCache { _ in
            ScriptedResponse(404, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")
        } _: { bench in
            #expect(await bench.imageRefusal()?.code == .notFound)
            #expect(await bench.imageRefusal()?.code == .notFound)
            #expect(bench.count == 2)
            // The response itself is reused by heuristic (RFC 9111 §4.2.2).
            let response = try await bench.get()
            #expect(response.handling.isHit)
        }
    }
}
