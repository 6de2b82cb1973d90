/// A header field line of a request or a response: `HeaderField("Accept-Language", "de")`. A received field has its
/// name in the original case and its value without surrounding whitespace.
public struct HeaderField: Sendable, Hashable, Codable {
    /// The name in its original case.
    public var name: String
    /// The value without surrounding whitespace.
    public var value: String
    /// Creates a field from a name and a value, which are not checked.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = value
    }
}

/// Contains the status, header fields and times of a response stored for reuse, without its body (RFC 9111 §3). A
/// `CacheTier` stores it as part of an `OriginalRecord`, and `PipelineConfiguration.willStore` may change it.
public struct StoredResponse: Sendable, Hashable, Codable {
    /// The status code, 100…999.
    public var status: Int
    /// The end-to-end fields in the order received, including duplicates.
    public var fields: [HeaderField]
    /// The time when the request was sent, in Unix seconds (RFC 9111 §4.2.3).
    public var requestTime: Double
    /// The time when the header of the response arrived, in Unix seconds.
    public var responseTime: Double
    /// The combined values of the request fields that the response varies on, by lowercase name. The value of an absent
    /// field is nil.
    package var selecting: [String: String?]
    /// A freshness lifetime in seconds that overrides the fields, or nil if none is assigned. It is set for a
    /// remembered failure or by the caller.
    public var assignedLifetime: Double?
    /// The maximum freshness lifetime in seconds, set by the redirects that led to the response, or nil if there is no
    /// limit.
    public var lifetimeLimit: Double?
    /// Whether a soft purge has made the response stale. Until it is validated, the response is treated like one within
    /// `stale-while-revalidate`.
    public var isSoftPurged: Bool
    /// Whether a purge of the response may have been missed. Until it is validated, the response is not used,
    /// regardless of the policy. Like other stale responses, it may still be served after the origin has failed.
    public var isInDoubt: Bool

    /// Whether the status is 200, or 203, which is a 200 that a proxy has modified (RFC 9110 §15.3.4).
    package var isOK: Bool { status == 200 || status == 203 }

    /// Creates a response. Times are in Unix seconds.
    public init(status: Int, fields: [HeaderField], requestTime: Double, responseTime: Double) {
        self.init(
            status: status, fields: fields, requestTime: requestTime, responseTime: responseTime, selecting: [:])
    }

    package init(
        status: Int, fields: [HeaderField], requestTime: Double, responseTime: Double,
        selecting: [String: String?] = [:], assignedLifetime: Double? = nil, lifetimeLimit: Double? = nil,
        isSoftPurged: Bool = false, isInDoubt: Bool = false
    ) {
        self.status = status
        self.fields = fields
        self.requestTime = requestTime
        self.responseTime = responseTime
        self.selecting = selecting
        self.assignedLifetime = assignedLifetime
        self.lifetimeLimit = lifetimeLimit
        self.isSoftPurged = isSoftPurged
        self.isInDoubt = isInDoubt
    }
}
