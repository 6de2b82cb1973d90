/// A conversation of one client with one resource of an origin through `/original`, and what must come of each request.
struct Exchange: Sendable {
    /// The source of the requirement.
    enum Weight: Sendable, Hashable {
        /// A requirement of an RFC.
        case required
        /// Nobody requires it, but a good shared cache does it.
        case optional
        /// The RFCs leave it open, or speak of no cache: held is what we chose.
        case chosen
        /// A good cache may do it, and we do not, for this reason. Held is what we do instead.
        case notDone(String)

        var name: String {
            switch self {
            case .required: "required"
            case .optional: "optional"
            case .chosen: "chosen"
            case .notDone: "not done"
            }
        }
    }

    /// A short name of the attempt; no two are equal.
    let name: String
    let weight: Weight
    /// RFC and section.
    let clause: String
    let requests: [Request]

    init(_ name: String, _ weight: Weight, _ clause: String, _ requests: Request...) {
        self.init(name, weight, clause, requests)
    }

    init(_ name: String, _ weight: Weight, _ clause: String, _ requests: [Request]) {
        self.name = name
        self.weight = weight
        self.clause = clause
        self.requests = requests
    }
}

/// One request of the client, what the origin would answer to it, and what must come of it.
struct Request: Sendable {
    /// The expected answer. Answers are counted from 1: answer 2 is the origin's answer to the second request.
    enum Outcome: Sendable, Hashable {
        /// The origin is asked once, and its answer is passed on.
        case fresh
        /// An earlier answer; the origin is not asked.
        case reused(Int)
        /// An earlier answer, after the origin was asked once with conditions from the answer's `ETag` and
        /// `Last-Modified`, as far as it has them, and answered 304.
        case confirmed(Int)
        /// An earlier answer, after the origin was asked once and did not answer, or with a failure.
        case standsIn(Int)
        /// An earlier answer at once; the origin is asked meanwhile, and the next request waits for that.
        case reusedMeanwhile(Int)
        /// Like `reused`, as soon as that answer is stored; until then older ones may come.
        case reusedSoon(Int)
        /// A problem of the server with this status, after this number of requests to the origin. No part of any answer
        /// shows.
        case refused(Int, asking: Int)
    }

    var outcome: Outcome
    var method = "GET"
    /// After the exchange's path: a query, a further path.
    var path = ""
    /// The client's fields. Those that every request has, see `Conversation`, come beside them.
    var sends: Lines = [:]
    /// Whether it comes without the fields that every request has.
    var isBare = false
    /// The origin's answer, should it be asked.
    var answer = OriginResponse()
    /// The status for the client, if it differs from the answer's.
    var status: Int?
    /// Fields for the client, besides the answer's.
    var shows: Lines = [:]
    /// Fields the client does not get.
    var hides: [String] = []
    /// The body, if it differs from the answer's.
    var body: String?
    /// The least `Age` the client gets; nil: whether there is one is not looked at.
    var age: Int?
    /// Statuses of the interim responses the client gets, with what each shows.
    var interim: [OriginResponse.Interim] = []
    /// Fields the origin is asked with.
    var asks: Lines = [:]
    /// Fields the origin is not asked with.
    var asksNot: [String] = []

    init(_ outcome: Outcome, _ answer: OriginResponse = OriginResponse(), _ change: (inout Request) -> Void = { _ in })
    {
        self.outcome = outcome
        self.answer = answer
        change(&self)
    }

    /// With fields of the client.
    static func with(
        _ sends: Lines, _ outcome: Outcome, _ answer: OriginResponse = OriginResponse(),
        _ change: (inout Request) -> Void = { _ in }
    ) -> Request {
        var request = Request(outcome, answer, change)
        request.sends = sends
        return request
    }
}

/// The origin's answer.
struct OriginResponse: Sendable, ExpressibleByDictionaryLiteral {
    struct Interim: Sendable, Hashable {
        var status: Int
        var fields: Lines = [:]
    }

    var status = 200
    /// `Date` and `Content-Length` are added if they are missing.
    var fields: Lines = [:]
    /// By default one that tells the exchange and the request.
    var body: String?
    /// Interim answers before the final one.
    var interim: [Interim] = []
    /// Whether the connection ends in its place.
    var isMissing = false

    init() {}

    init(_ status: Int, _ fields: Lines = [:], body: String? = nil) {
        self.status = status
        self.fields = fields
        self.body = body
    }

    init(dictionaryLiteral elements: (String, Lines.Value)...) { fields = Lines(elements) }

    /// No answer: the connection is closed.
    static let missing: OriginResponse = {
        var answer = OriginResponse()
        answer.isMissing = true
        return answer
    }()

    /// With further fields.
    func with(_ more: Lines) -> OriginResponse {
        var answer = self
        answer.fields.all += more.all
        return answer
    }
}

/// Field lines in order, with repeats.
struct Lines: Sendable, Hashable, ExpressibleByDictionaryLiteral {
    enum Value: Sendable, Hashable, ExpressibleByStringInterpolation {
        /// Unchanged, one scalar a byte.
        case text(String)
        /// An HTTP date so many seconds from the exchange's start.
        case at(Int)
        /// A date in the form of RFC 850.
        case at850(Int)

        init(stringLiteral value: String) { self = .text(value) }
    }

    struct Line: Sendable, Hashable {
        var name: String
        var value: Value
    }

    var all: [Line]

    init(_ elements: [(String, Value)]) { all = elements.map { Line(name: $0.0, value: $0.1) } }
    init(dictionaryLiteral elements: (String, Value)...) { self.init(elements) }
}

// MARK: The common forms

extension Exchange {
    /// Asked for twice: the second request is answered by the first answer.
    static func reused(
        _ name: String, _ weight: Weight, _ clause: String, _ answer: OriginResponse, then: Lines = [:],
        first: Lines = [:],
        _ change: (inout Request) -> Void = { _ in }
    ) -> Exchange {
        Exchange(name, weight, clause, .with(first, .fresh, answer), .with(then, .reused(1), OriginResponse(), change))
    }

    /// Two requests: the second gets a new answer.
    static func refetched(
        _ name: String, _ weight: Weight, _ clause: String, _ answer: OriginResponse, then: Lines = [:],
        first: Lines = [:],
        _ change: (inout Request) -> Void = { _ in }
    ) -> Exchange {
        var second = answer
        second.body = nil
        return Exchange(name, weight, clause, .with(first, .fresh, answer), .with(then, .fresh, second, change))
    }

    /// Asked for twice: the second time the origin confirms the first answer.
    static func confirmed(
        _ name: String, _ weight: Weight, _ clause: String, _ answer: OriginResponse, then: Lines = [:],
        first: Lines = [:],
        by fields: Lines = [:], _ change: (inout Request) -> Void = { _ in }
    ) -> Exchange {
        Exchange(
            name, weight, clause, .with(first, .fresh, answer),
            .with(then, .confirmed(1), OriginResponse(304, fields), change))
    }
}
