// Dates of HTTP fields (RFC 9110 §5.6.7). Three forms are read, exactly but for letter case, which a cache should not
// mind (RFC 9111 §4.2); one is written:
//
//     Sun, 06 Nov 1994 08:49:37 GMT      IMF-fixdate, the one written
//     Sunday, 06-Nov-94 08:49:37 GMT     RFC 850
//     Sun Nov  6 08:49:37 1994           asctime
//
// Days between the civil calendar and 1970 are counted with the 400-year cycle of 146,097 days, years beginning in
// March so that the leap day is a year's last. Whether the weekday fits the date is not checked.

/// Dates as HTTP fields carry them, in Unix seconds.
public enum HTTPDate {
    private static let shortDays = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    private static let longDays = [
        "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday",
    ]
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    /// Unix seconds of a date in one of the three forms, in any letter case; nil for anything else. The zone is `GMT`.
    ///
    /// - Parameter now: Unix seconds; a date with a two-digit year over 50 years ahead of it is of the past century.
    public static func unixSeconds(_ text: String, now: Double) -> Int? {
        let bytes = Array(text.utf8)
        guard bytes.count >= 24, bytes.count <= 33, bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) else { return nil }
        let parts = FieldLines.lowercased(text).split(separator: " ", omittingEmptySubsequences: false).map(String.init)
        if parts.count == 6, parts[0].hasSuffix(","), isDay(String(parts[0].dropLast())) {
            guard parts[5] == "gmt" else { return nil }
            return seconds(day: parts[1], month: parts[2], year: parts[3], time: parts[4])
        }
        if parts.count == 4, parts[0].hasSuffix(","), isLongDay(String(parts[0].dropLast())) {
            let date = parts[1].split(separator: "-", omittingEmptySubsequences: false).map(String.init)
            guard parts[3] == "gmt", date.count == 3, let short = number(date[2], digits: 2) else { return nil }
            let today = civil(days: Int((now / 86_400).rounded(.down)))
            // The last year of these two digits that begins within 50 years from now.
            let year = today.year + 50 - ((today.year + 50 - short) % 100)
            let limit = days(year: today.year + 50, month: today.month, day: today.day) * 86_400
            let timeOfDay = now - (now / 86_400).rounded(.down) * 86_400
            let found = seconds(day: date[0], month: date[1], year: padded(year, 4), time: parts[2])
            guard let found, Double(found - limit) > timeOfDay else { return found }
            return seconds(day: date[0], month: date[1], year: padded(year - 100, 4), time: parts[2])
        }
        // asctime fills a one-digit day with a space, which splits into an empty part.
        var plain = parts
        if plain.count == 6, plain[2].isEmpty, plain[3].utf8.count == 1 {
            plain.remove(at: 2)
            plain[2] = "0" + plain[2]
        }
        guard plain.count == 5, isDay(plain[0]) else { return nil }
        return seconds(day: plain[2], month: plain[1], year: plain[4], time: plain[3])
    }

    /// The date as IMF-fixdate, the only form to send.
    public static func text(unixSeconds: Int) -> String {
        let days = Int((Double(unixSeconds) / 86_400).rounded(.down))
        let rest = unixSeconds - days * 86_400
        let date = civil(days: days)
        // 1 January 1970 was a Thursday.
        let weekday = shortDays[((days + 3) % 7 + 7) % 7]
        let time = [rest / 3600, rest / 60 % 60, rest % 60].map { padded($0, 2) }.joined(separator: ":")
        return "\(weekday), \(padded(date.day, 2)) \(months[date.month - 1]) \(padded(date.year, 4)) \(time) GMT"
    }

    private static func isDay(_ text: String) -> Bool { shortDays.contains { FieldLines.isSameName($0, text) } }

    private static func isLongDay(_ text: String) -> Bool { longDays.contains { FieldLines.isSameName($0, text) } }

    private static func seconds(day: String, month: String, year: String, time: String) -> Int? {
        let clock = time.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard let day = number(day, digits: 2),
            let month = months.firstIndex(where: { FieldLines.isSameName($0, month) }),
            let year = number(year, digits: 4), clock.count == 3, let hour = number(clock[0], digits: 2),
            let minute = number(clock[1], digits: 2), let second = number(clock[2], digits: 2),
            day >= 1, hour < 24, minute < 60, second <= 60  // a leap second may be 60
        else { return nil }
        let lengths = [31, isLeap(year) ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= lengths[month] else { return nil }
        return days(year: year, month: month + 1, day: day) * 86_400 + hour * 3600 + minute * 60 + second
    }

    private static func number(_ text: String, digits: Int) -> Int? {
        guard text.utf8.count == digits, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
        return Int(text)
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
