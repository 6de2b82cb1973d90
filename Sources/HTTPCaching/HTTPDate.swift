// Dates in HTTP fields (RFC 9110 §5.6.7). Three formats are accepted, but only the first is generated. Dates are parsed
// strictly, except that letter case is ignored, as RFC 9111 §4.2 recommends:
//
//     Sun, 06 Nov 1994 08:49:37 GMT      IMF-fixdate
//     Sunday, 06-Nov-94 08:49:37 GMT     RFC 850
//     Sun Nov  6 08:49:37 1994           asctime
//
// Days between the civil calendar and 1970 are counted with the 400-year cycle of 146,097 days. Years begin in March,
// so that the leap day is the last day of a year. The weekday is not checked against the date.

/// Converts between dates in HTTP fields and Unix seconds.
package enum HTTPDate {
    private static let shortDays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let longDays = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Parses a date in one of the three formats, in any letter case, and returns Unix seconds. Returns nil if the
    /// string is not such a date. The time zone is always `GMT`.
    ///
    /// - Parameter now: the current time in Unix seconds. A two-digit year that would be more than 50 years after `now`
    ///   belongs to the previous century.
    package static func unixSeconds(_ text: String, now: Double) -> Int? {
        let text = Text(bytes: Array(text.utf8))
        let count = text.bytes.count
        if count == 29, text.has(", ", at: 3) {
            guard text.word(at: 0, count: 3, of: shortDays) != nil, text.has(" GMT", at: 25), text.has(" ", at: 16),
                let day = text.day(at: 5), text.has(" ", at: 7), let month = text.month(at: 8), text.has(" ", at: 11),
                let year = text.number(at: 12, digits: 4), let time = text.time(at: 17)
            else { return nil }
            return seconds(year, month, day, time)
        }
        if count == 24 {
            guard text.word(at: 0, count: 3, of: shortDays) != nil, text.has(" ", at: 3),
                let month = text.month(at: 4), text.has(" ", at: 7), let day = text.day(at: 8, isPadded: true),
                text.has(" ", at: 10), let time = text.time(at: 11), text.has(" ", at: 19),
                let year = text.number(at: 20, digits: 4)
            else { return nil }
            return seconds(year, month, day, time)
        }
        guard let comma = text.bytes.firstIndex(of: UInt8(ascii: ",")), count == comma + 24,
            text.word(at: 0, count: comma, of: longDays) != nil, text.has(", ", at: comma),
            let day = text.day(at: comma + 2), text.has("-", at: comma + 4), let month = text.month(at: comma + 5),
            text.has("-", at: comma + 8), let short = text.number(at: comma + 9, digits: 2),
            text.has(" ", at: comma + 11), let time = text.time(at: comma + 12), text.has(" GMT", at: comma + 20)
        else { return nil }
        let today = civil(days: Int((now / 86_400).rounded(.down)))
        // The last year with these two digits that begins within 50 years from now.
        let year = today.year + 50 - ((today.year + 50 - short) % 100)
        let limit = days(year: today.year + 50, month: today.month, day: today.day) * 86_400
        let timeOfDay = now - (now / 86_400).rounded(.down) * 86_400
        guard let found = seconds(year, month, day, time), Double(found - limit) > timeOfDay else {
            return seconds(year, month, day, time)
        }
        return seconds(year - 100, month, day, time)
    }

    /// Returns the date as IMF-fixdate, the only format that may be sent.
    package static func text(unixSeconds: Int) -> String {
        let days = Int((Double(unixSeconds) / 86_400).rounded(.down))
        let rest = unixSeconds - days * 86_400
        let date = civil(days: days)
        // 1 January 1970 was a Thursday.
        let weekday = shortDays[((days + 3) % 7 + 7) % 7]
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(weekday), \(padded(date.day, 2)) \(months[date.month - 1]) \(padded(date.year, 4)) \(time) GMT"
    }

    /// Converts a date and a time of day to Unix seconds. Returns nil if the month does not have that day. Months are
    /// numbered from 1 to 12.
    private static func seconds(_ year: Int, _ month: Int, _ day: Int, _ time: Int) -> Int? {
        let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day >= 1, day <= lengths[month - 1] else { return nil }
        return min(days(year: year, month: month, day: day) * 86_400 + time, last)
    }

    /// 31 Dec 9999 23:59:59, the last second that can be written. The leap second after it is treated as this second.
    private static let last = 253_402_300_799

    /// The bytes of a date, accessed by position.
    private struct Text {
        let bytes: [UInt8]

        /// Whether these characters are at this position. Letter case is ignored.
        func has(_ expected: StaticString, at start: Int) -> Bool {
            guard start + expected.utf8CodeUnitCount <= bytes.count else { return false }
            return expected.withUTF8Buffer { wanted in
                wanted.indices.allSatisfy { Text.isSame(wanted[$0], bytes[start + $0]) }
            }
        }

        /// Returns the index in `words` of the word at this position, ignoring case.
        func word(at start: Int, count: Int, of words: [String]) -> Int? {
            guard start + count <= bytes.count else { return nil }
            return words.firstIndex { word in
                word.utf8.count == count && zip(word.utf8, bytes[start...]).allSatisfy { Text.isSame($0, $1) }
            }
        }

        func month(at start: Int) -> Int? { word(at: start, count: 3, of: months).map { $0 + 1 } }

        func number(at start: Int, digits: Int) -> Int? {
            guard start + digits <= bytes.count else { return nil }
            var value = 0
            for byte in bytes[start..<start + digits] {
                guard byte >= 0x30, byte <= 0x39 else { return nil }
                value = value * 10 + Int(byte - 0x30)
            }
            return value
        }

        /// Parses two digits, or a space and one digit if the format pads with a space.
        func day(at start: Int, isPadded: Bool = false) -> Int? {
            isPadded && has(" ", at: start) ? number(at: start + 1, digits: 1) : number(at: start, digits: 2)
        }

        /// Parses `hh:mm:ss` and returns seconds. The seconds may be 60 for a leap second.
        func time(at start: Int) -> Int? {
            guard let hour = number(at: start, digits: 2), has(":", at: start + 2),
                let minute = number(at: start + 3, digits: 2), has(":", at: start + 5),
                let second = number(at: start + 6, digits: 2), hour < 24, minute < 60, second <= 60
            else { return nil }
            return hour * 3600 + minute * 60 + second
        }

        private static func isSame(_ one: UInt8, _ other: UInt8) -> Bool {
            one == other || (one | 0x20 == other | 0x20 && one | 0x20 >= 0x61 && one | 0x20 <= 0x7A)
        }
    }

    private static func padded(_ value: Int, _ width: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }

    private static func isLeap(_ year: Int) -> Bool { year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) }

    private static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }
}
