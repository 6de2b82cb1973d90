/// Age of stored responses (RFC 9111 §4.2.3).
public enum Age {
    /// Seconds since the origin generated or last validated the response, as well as a cache can know, ≥ 0.
    ///
    /// The larger of the apparent age and the received `Age` plus the time the response took, and on top the time
    /// since. A malformed `Age` is ignored, of a list the first member counts (RFC 9111 §5.1). A clock that was set back
    /// does not make a response younger than it was when it arrived.
    ///
    /// - Parameter now: Unix seconds.
    public static func current(of response: StoredResponse, now: Double) -> Double {
        let apparent = max(0, response.responseTime - date(of: response))
        let received = response.fields.first("age").flatMap { FieldLines.members(of: $0).first }
            .flatMap(FieldLines.deltaSeconds)
        let delay = max(0, response.responseTime - response.requestTime)
        let corrected = Double(received ?? 0) + delay
        let resident = max(0, now - response.responseTime)
        return max(apparent, corrected) + resident
    }

    /// `Date` in Unix seconds; the time of arrival where it is absent or malformed (RFC 9110 §6.6.1).
    static func date(of response: StoredResponse) -> Double {
        response.fields.first("date").flatMap { HTTPDate.unixSeconds($0, now: response.responseTime) }.map(Double.init)
            ?? response.responseTime
    }
}
