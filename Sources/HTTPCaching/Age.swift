/// The components of a stored response's age, in seconds, each at least 0 (RFC 9111 §4.2.3).
package struct AgeArithmetic: Sendable, Hashable {
    /// The difference between the arrival of the response and its `Date`, or 0 if `Date` was in the future.
    package var apparentAge: Double
    /// The value of the received `Age` field, or 0 if the field is absent or invalid.
    package var ageValue: Double
    package var responseDelay: Double
    package var residentTime: Double

    /// The received `Age` plus the response delay.
    package var correctedAgeValue: Double { ageValue + responseDelay }
    /// The age on arrival, which is the larger of the two estimates.
    package var correctedInitialAge: Double { max(apparentAge, correctedAgeValue) }
    package var currentAge: Double { correctedInitialAge + residentTime }
}

/// Computes the age of stored responses (RFC 9111 §4.2.3). Times are in Unix seconds.
package enum Age {
    /// Returns the age of a response in seconds (≥ 0): the time since the origin generated or last validated it, as
    /// estimated by RFC 9111 §4.2.3.
    ///
    /// The age on arrival is the larger of the apparent age and the sum of the received `Age` and the response delay.
    /// The time since arrival is added. A malformed `Age` is ignored. If `Age` is a list, its first member is used
    /// (RFC 9111 §5.1). Setting the clock back does not make a response younger than on arrival.
    package static func current(of response: StoredResponse, now: Double) -> Double {
        arithmetic(of: response, now: now).currentAge
    }

    /// Returns the components from which `current(of:now:)` computes the age.
    package static func arithmetic(of response: StoredResponse, now: Double) -> AgeArithmetic {
        let received = response.fields.first("age").flatMap { FieldLines.members(of: $0).first }
            .flatMap(FieldLines.deltaSeconds)
        return AgeArithmetic(
            apparentAge: max(0, response.responseTime - date(of: response)), ageValue: Double(received ?? 0),
            responseDelay: max(0, response.responseTime - response.requestTime),
            residentTime: max(0, now - response.responseTime))
    }

    /// Returns the value of an `Age` field in whole seconds, rounded down and at most 2³¹ (RFC 9111 §5.1, §1.2.2).
    package static func fieldValue(of response: StoredResponse, now: Double) -> Int {
        Int(min(current(of: response, now: now).rounded(.down), 2_147_483_648))
    }

    /// Returns the `Date` of a response in Unix seconds. Returns the time of arrival if `Date` is absent or malformed
    /// (RFC 9110 §6.6.1).
    static func date(of response: StoredResponse) -> Double {
        response.fields.first("date").flatMap { HTTPDate.unixSeconds($0, now: response.responseTime) }.map(Double.init)
            ?? response.responseTime
    }
}
