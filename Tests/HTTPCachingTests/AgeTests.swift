import HTTPCaching
import Testing

struct AgeTests {
    /// RFC 9111 §5.1, `Age.current`: The first member of an `Age` list is used if it is all digits, capped at 2³¹.
    @Test(arguments: [
        (nil, 0.0), ("10", 10), ("0", 0), ("10, 3", 10), ("4294967296", 2_147_483_648), ("-1", 0), ("1.5", 0),
        ("abc", 0), ("", 0),
    ])
    func `a received Age counts, its first member of several, none if malformed (RFC 9111 §5.1)`(
        text: String?, expected: Double
    ) {
        var response = stored([:])
        if let text { response.fields.append(HeaderField("Age", text)) }
        #expect(Age.current(of: response, now: epoch) == expected)
    }

    /// RFC 9111 §4.2.3, `Age.current`: The age is the larger of apparent and corrected age, plus the time since
    /// arrival.
    @Test func `age is the larger of apparent and corrected age, and the time since (RFC 9111 §4.2.3)`() {
        var response = stored(["Age": "5"])
        response.requestTime = epoch + 97
        response.responseTime = epoch + 100
        #expect(Age.current(of: response, now: epoch + 110) == 110)  // Date says 100 on arrival
        response.fields[0].value = "200"
        #expect(Age.current(of: response, now: epoch + 110) == 213)  // 200, 3 on the way, 10 since
    }

    /// RFC 9111 §4.2.3, `Age.current`: The age is never negative, whatever `Date` and the clock show.
    @Test func `a Date ahead of our clock and a clock set back give no negative age`() {
        var response = stored(["Age": "5"])
        response.responseTime = epoch - 50
        response.requestTime = epoch - 50
        #expect(Age.current(of: response, now: epoch - 100) == 5)
    }

    /// RFC 9111 §5.1, `Age.current`: The first of several `Age` lines is used.
    @Test func `of several Age lines the first counts (RFC 9111 §5.1)`() {
        #expect(Age.current(of: stored(["Age": "7200", "age": "0"]), now: epoch) == 7200)
        #expect(Age.current(of: stored(["Age": "0", "age": "7200"]), now: epoch) == 0)
    }

    /// RFC 9110 §6.6.1, `Age.current`: Without a valid `Date`, the time of arrival is used.
    @Test func `without a valid Date the response is taken to be made on arrival (RFC 9110 §6.6.1)`() {
        #expect(Age.current(of: stored(["Age": "5"], date: nil), now: epoch + 1) == 6)
        #expect(Age.current(of: stored(["Age": "5"], date: "foo"), now: epoch + 1) == 6)
    }

    /// RFC 9111 §4.2.3, `Age.arithmetic`: `Age.arithmetic` lists the terms, for explanations.
    @Test func `the arithmetic names each term (RFC 9111 §4.2.3)`() {
        var response = stored(["Age": "5"])
        (response.requestTime, response.responseTime) = (epoch + 97, epoch + 100)
        let terms = Age.arithmetic(of: response, now: epoch + 110)
        #expect((terms.apparentAge, terms.ageValue, terms.responseDelay, terms.residentTime) == (100, 5, 3, 10))
        #expect((terms.correctedAgeValue, terms.correctedInitialAge, terms.currentAge) == (8, 100, 110))
    }

    /// RFC 9111 §5.1, §1.2.2, `Age.fieldValue`: `Age` is sent in whole seconds, rounded down, at most 2³¹.
    @Test func `the Age sent is whole seconds, at most 2³¹ (RFC 9111 §5.1, §1.2.2)`() {
        #expect(Age.fieldValue(of: stored(["Age": "30"]), now: epoch + 3.9) == 33)
        #expect(Age.fieldValue(of: stored(["Age": "99999999999"]), now: epoch + 9) == 2_147_483_648)
    }
}
