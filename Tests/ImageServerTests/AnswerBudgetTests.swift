import Glibc
import HTTPCaching
import PipelineSupport
import Testing

@testable import ImageServer
@testable import ImageServerNIO

/// The limits of bytes that answers hold, for one address and for all.
@Suite struct AnswerBudgetTests {
    private let budget = AnswerBudget(limit: 80_000_000)

    private func claim(_ account: AnswerBudget.Account? = nil) -> AnswerClaim {
        AnswerClaim(account ?? AnswerBudget.Account(budget), freeBodyBytes: 4_096)
    }

    private static func body(_ count: Int) -> ArraySlice<UInt8> { [UInt8](repeating: 1, count: count)[...] }

    @Test func `one address has a quarter, and long bodies three quarters of it`() {
        let account = AnswerBudget.Account(budget)
        let claims = (0..<20).map { _ in claim(account) }
        let long = claims[..<4].map { $0.reserve(Self.body(5_000_000)) }
        #expect(long == [true, true, true, false])
        // Pictures have what is left, up to a quarter of everything.
        let short = claims[4...].map { $0.reserve(Self.body(1_000_000)) }
        #expect(short.count { $0 } == 5 && budget.bytes == 20_000_000)
        #expect(claim().reserve(Self.body(5_000_000)), "another address has its own")
    }

    @Test func `all addresses together have the limit, and give back what they held`() {
        var claims: [AnswerClaim] = []
        for _ in 0..<12 {
            let one = claim()
            if one.reserve(Self.body(14_000_000)) { claims.append(one) }
        }
        #expect(claims.count == 4 && budget.bytes == 56_000_000 && budget.answers == 4)
        let refused = claim().admitted(
            ServerResponse(status: 200, body: Self.body(14_000_000)), isHead: false, now: 0)
        #expect(refused.status == 503 && refused.fields.contains { $0.name == "Retry-After" })
        let head = claim().admitted(
            ServerResponse(status: 200, body: Self.body(14_000_000)), isHead: true, now: 0)
        #expect(head.status == 200)
        claims[0].release()
        #expect(claim().reserve(Self.body(14_000_000)))
        claims = []
        #expect(budget.bytes == 0 && budget.answers == 0)
    }

    @Test func `pages that may read a response may read its refusal`() {
        let response = CrossOriginRule.all.applied(
            to: ServerResponse(status: 200, body: Self.body(90_000_000)), origin: nil)
        let refused = claim().admitted(response, isHead: false, now: 0)
        #expect(refused.status == 503 && refused["access-control-allow-origin"] == "*")
        #expect(refused["timing-allow-origin"] == "*" && refused["cache-control"] == "no-store")
        let other = claim().admitted(ServerResponse(status: 200, body: Self.body(90_000_000)), isHead: false, now: 0)
        #expect(other.status == 503 && other["access-control-allow-origin"] == nil)
    }

    @Test func `a body counts once, in memory or in a file, until the last answer has sent it`() throws {
        let bytes = [UInt8](repeating: 2, count: 10_000_000)
        let file = try #require(SpooledBody(folder: "/tmp"))
        #expect(file.append(bytes))
        let again = SpooledBody(descriptor: try #require(file.reopenedForReading()), count: file.count)
        var answers = [bytes[...], bytes[5_000_000...]].map { ServerResponse(status: 200, body: $0) }
        for body in [file, again] {
            var answer = ServerResponse(status: 200)
            answer.file = ServerResponse.FilePart(file: body, range: 0..<7)
            answers.append(answer)
        }
        // One file and one array; a part of a file holds all of it.
        var claims = answers.map { answer in
            let claim = claim()
            #expect(claim.admitted(answer, isHead: false, now: 0) == answer)
            return claim
        }
        #expect(budget.bytes == 20_000_000 && budget.answers == 4)
        claims.removeFirst(1)
        claims.removeLast(1)
        #expect(budget.bytes == 20_000_000)
        claims = []
        #expect(budget.bytes == 0)
    }

    @Test func `a file with a name takes nothing, and is answered when the budget is used up`() throws {
        let full = (0..<5).map { _ in claim() }
        for claim in full { _ = claim.reserve(Self.body(14_000_000)) }
        let held = budget.bytes
        let name = "/tmp/answer-budget-\(getpid())"
        let file = try #require(SpooledBody(folder: "/tmp"))
        #expect(file.append([UInt8](repeating: 2, count: 10_000_000)) && file.link(at: name))
        defer { unlink(name) }
        var answer = ServerResponse(status: 200)
        answer.file = ServerResponse.FilePart(file: file, range: 0..<file.count)
        let named = claim()
        #expect(named.admitted(answer, isHead: false, now: 0).status == 200)
        #expect(budget.bytes == held && budget.answers == 5)
        unlink(name)
        #expect(claim().admitted(answer, isHead: false, now: 0).status == 200, "it is held already")
        named.release()
        #expect(claim().admitted(answer, isHead: false, now: 0).status == 503)
    }
}
