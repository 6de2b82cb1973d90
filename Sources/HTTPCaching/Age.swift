/// The terms of the age of a stored response, in seconds, each ≥ 0 (RFC 9111 §4.2.3).
package struct AgeArithmetic: Sendable, Hashable {
    /// How far `Date` lay in the past when the response arrived; 0 if it lay in the future.
    package var apparentAge: Double
    /// The `Age` received; 0 without a valid one.
    package var ageValue: Double
    package var responseDelay: Double
    package var residentTime: Double

    /// `Age` corrected by the response delay.
    package var correctedAgeValue: Double { ageValue + responseDelay }
    /// The age on arrival: the larger of the two estimates.
    package var correctedInitialAge: Double { max(apparentAge, correctedAgeValue) }
    package var currentAge: Double { correctedInitialAge + residentTime }
}

/// Age of stored responses at `now`, in Unix seconds (RFC 9111 §4.2.3).
package enum Age {
    /// Seconds since the origin generated or last validated the response, ≥ 0, as far as a cache can know.
    ///
    /// The age on arrival is the larger of the apparent age and the received `Age` plus the response delay; the time
    /// since is added. A malformed `Age` is ignored; of a list the first member counts (RFC 9111 §5.1). Setting the
    /// clock back does not make a response younger than it was when it arrived.
    package static func current(of response: StoredResponse, now: Double) -> Double {
        arithmetic(of: response, now: now).currentAge
    }

    /// Every term of `current(of:now:)`.
    package static func arithmetic(of response: StoredResponse, now: Double) -> AgeArithmetic {
        let received = response.fields.first("age").flatMap { FieldLines.members(of: $0).first }
            .flatMap(FieldLines.deltaSeconds)
        return AgeArithmetic(
            apparentAge: max(0, response.responseTime - date(of: response)), ageValue: Double(received ?? 0),
            responseDelay: max(0, response.responseTime - response.requestTime),
            residentTime: max(0, now - response.responseTime))
    }

    /// The value of an `Age` field: whole seconds, rounded down, at most 2³¹ (RFC 9111 §5.1, §1.2.2).
    package static func fieldValue(of response: StoredResponse, now: Double) -> Int {
        Int(min(current(of: response, now: now).rounded(.down), 2_147_483_648))
    }

    /// `Date` in Unix seconds; the time of arrival if it is absent or malformed (RFC 9110 §6.6.1).
    static func date(of response: StoredResponse) -> Double {
        response.fields.first("date").flatMap { HTTPDate.unixSeconds($0, now: response.responseTime) }.map(Double.init)
            ?? response.responseTime
    }
}
