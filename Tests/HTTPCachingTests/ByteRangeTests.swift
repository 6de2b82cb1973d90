import HTTPCaching
import Testing

struct ByteRangeTests {
    private func outcome(
        _ range: String, length: Int = 10, ifRange: String? = nil, response: StoredResponse? = nil, isHead: Bool = false
    ) -> ByteRange.Outcome {
        var fields = [HeaderField("range", range)]
        if let ifRange { fields.append(HeaderField("If-Range", ifRange)) }
        return ByteRange.evaluate(
            requestFields: fields, response: response ?? stored([:]), length: length, isHead: isHead)
    }

    /// RFC 9110 §14.1.2, `ByteRange.evaluate`: A single range selects a part of the body: first and last byte, open end
    /// or suffix.
    @Test(arguments: [
        ("bytes=0-1", 0..<2), ("bytes=1-", 1..<10), ("bytes=-1", 9..<10), ("bytes=-10", 0..<10), ("bytes=-99", 0..<10),
        ("bytes=9-9", 9..<10), ("bytes=5-99999999999999999999999", 5..<10), ("BYTES=2-3", 2..<4),
        ("bytes= 2-3 ", 2..<4),
        ("bytes=,2-3,", 2..<4), ("bytes=0-9", 0..<10),
    ])
    func `one range of bytes is a part (RFC 9110 §14.1.2)`(range: String, expected: Range<Int>) {
        #expect(outcome(range) == .part(expected))
    }

    /// RFC 9110 §14.1.2, §15.5.17, `ByteRange.evaluate`: A valid range outside the body gets a 416.
    @Test(arguments: ["bytes=10-", "bytes=10-12", "bytes=-0", "bytes=10-10, 99-", "bytes=99999999999999999999-"])
    func `a valid range outside the body cannot be satisfied (RFC 9110 §14.1.2, §15.5.17)`(range: String) {
        #expect(outcome(range) == .unsatisfiable)
    }

    /// RFC 9110 §14.1.2, `ByteRange.evaluate`: Every range of an empty body gets a 416.
    @Test func `nothing of an empty body can be asked for (RFC 9110 §14.1.2)`() {
        #expect(outcome("bytes=0-", length: 0) == .unsatisfiable)
        #expect(outcome("bytes=-5", length: 0) == .unsatisfiable)
    }

    /// RFC 9110 §14.2, `ByteRange.evaluate`: A malformed range or another unit is ignored.
    @Test(arguments: [
        "", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=3-2", "bytes=0-1, 3-2", "bytes=1-2-3",
        "bytes=+1-2", "bytes=1 -2", "lines=0-1", "bytes:0-1", "bytes=--1", "items=-1", "bytes=0x1-2",
    ])
    func `malformed ranges and other units give the whole (RFC 9110 §14.2)`(range: String) {
        #expect(outcome(range) == .whole)
    }

    /// RFC 9110 §14.2, §15.3.7.2, `ByteRange.evaluate`: Overlapping or adjoining ranges are merged. Choice: separate
    /// ranges are ignored.
    @Test(arguments: [
        ("bytes=0-1, 2-3", ByteRange.Outcome.part(0..<4)), ("bytes=4-6, 0-5", .part(0..<7)),
        ("bytes=0-1, 99-", .part(0..<2)), ("bytes=1-1, 0-9", .part(0..<10)), ("bytes=0-1, 5-6", .whole),
        ("bytes=0-0, -1", .whole),
    ])
    func `several ranges are joined where they touch, else the whole is sent (RFC 9110 §14.2, §15.3.7.2)`(
        range: String, expected: ByteRange.Outcome
    ) {
        #expect(outcome(range) == expected)
    }

    /// RFC 9110 §17.15, `ByteRange.evaluate`: A `Range` with too many ranges is ignored.
    @Test func `a flood of ranges gives the whole (RFC 9110 §17.15)`() {
        let flood = "bytes=" + (0..<33).map { _ in "0-1" }.joined(separator: ",")
        #expect(outcome(flood) == .whole)
    }

    /// RFC 9110 §14.2, `ByteRange.evaluate`: `Range` applies only to a GET with exactly one `Range` field and a stored
    /// 200.
    @Test func `ranges are for a single GET range field and a stored 200 only (RFC 9110 §14.2)`() {
        #expect(outcome("bytes=0-1", isHead: true) == .whole)
        #expect(outcome("bytes=0-1", response: stored([:], status: 404)) == .whole)
        let two = [HeaderField("Range", "bytes=0-1"), HeaderField("Range", "bytes=0-1")]
        #expect(ByteRange.evaluate(requestFields: two, response: stored([:]), length: 10) == .whole)
        #expect(ByteRange.evaluate(requestFields: [], response: stored([:]), length: 10) == .whole)
    }

    /// RFC 9110 §13.1.5, `ByteRange.evaluate`: An `If-Range` tag must match strongly.
    @Test(arguments: [
        ("\"a\"", "\"a\"", true), ("\"b\"", "\"a\"", false), ("W/\"a\"", "W/\"a\"", false), ("W/\"a\"", "\"a\"", false),
        ("\"a\"", "W/\"a\"", false), ("a", "a", false), ("\"a\", \"a\"", "\"a\"", false),
    ])
    func `a tag in If-Range must match strongly (RFC 9110 §13.1.5)`(ifRange: String, tag: String, expected: Bool) {
        let response = stored(["ETag": tag])
        #expect((outcome("bytes=0-1", ifRange: ifRange, response: response) == .part(0..<2)) == expected)
        #expect(outcome("bytes=0-1", ifRange: ifRange) == .whole)
    }

    /// RFC 9110 §13.1.5, §8.8.2.2, `ByteRange.evaluate`: An `If-Range` date must equal `Last-Modified`, which must be
    /// at least a second earlier than `Date`.
    @Test
    func `a date in If-Range must be the Last-Modified exactly, a second before Date (RFC 9110 §13.1.5, §8.8.2.2)`() {
        let before = "Sun, 06 Nov 1994 08:49:36 GMT"
        let later = "Sun, 06 Nov 1994 08:49:38 GMT"
        let response = stored(["Last-Modified": before, "ETag": "\"a\""])
        #expect(outcome("bytes=0-1", ifRange: before, response: response) == .part(0..<2))
        #expect(outcome("bytes=0-1", ifRange: later, response: response) == .whole)
        let respelled = "Sunday, 06-Nov-94 08:49:36 GMT"
        #expect(outcome("bytes=0-1", ifRange: respelled, response: response) == .whole)
        let sameSecond = stored(["Last-Modified": epochText])
        #expect(outcome("bytes=0-1", ifRange: epochText, response: sameSecond) == .whole)
        let undated = stored(["Last-Modified": before], date: nil)
        #expect(outcome("bytes=0-1", ifRange: before, response: undated) == .whole)
        #expect(outcome("bytes=0-1", ifRange: before, response: stored([:])) == .whole)
    }

    /// RFC 9110 §13.1.5, `ByteRange.evaluate`: A repeated `If-Range` does not match.
    @Test func `a repeated If-Range is not met`() {
        let request = [
            HeaderField("Range", "bytes=0-1"), HeaderField("If-Range", "\"a\""), HeaderField("If-Range", "\"a\""),
        ]
        let response = stored(["ETag": "\"a\""])
        #expect(ByteRange.evaluate(requestFields: request, response: response, length: 10) == .whole)
    }

    /// RFC 9110 §15.3.7, `ByteRange.partFields`: A 206 has the complete response's fields, but its own length and
    /// range.
    @Test func `a 206 has the fields of the whole with its own length and range (RFC 9110 §15.3.7)`() {
        let fields = [HeaderField("A", "1"), HeaderField("content-length", "10"), HeaderField("ETag", "\"a\"")]
        #expect(
            ByteRange.partFields(fields, part: 2..<5, length: 10) == [
                HeaderField("A", "1"), HeaderField("ETag", "\"a\""), HeaderField("Content-Range", "bytes 2-4/10"),
                HeaderField("Content-Length", "3"),
            ])
    }

    /// RFC 9110 §15.5.17, `ByteRange.unsatisfiableFields`: A 416 states the length and does not describe a body.
    @Test func `a 416 names the length and describes no body (RFC 9110 §15.5.17)`() {
        let fields = [
            HeaderField("Date", epochText), HeaderField("Content-Type", "a/b"), HeaderField("Content-Length", "10"),
            HeaderField("Cache-Control", "max-age=9"),
        ]
        #expect(
            ByteRange.unsatisfiableFields(fields, length: 10) == [
                HeaderField("Date", epochText), HeaderField("Content-Range", "bytes */10"),
                HeaderField("Content-Length", "0"),
            ])
    }
}
