@testable import HTTPCaching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// `Range` and `If-Range`: a part lies within the body and is not empty. The first byte gives the body's length.
    static let rangeTarget = FuzzTarget(
        "range",
        words: [
            "Range: bytes=", "If-Range: ", "\"a\"", "W/\"a\"", fuzzedDate, "0-", "-5", "-0", "5-9", "0-0,-1", ",", "-",
            "9223372036854775807", "18446744073709551616", "bytes", "BYTES=", " ", "\n", "=",
        ]
    ) { bytes in
        guard let first = bytes.first else { return nil }
        let length = first == 0xFF ? Int.max : Int(first)
        let response = StoredResponse(
            status: 200,
            fields: [
                HeaderField("ETag", "\"a\""), HeaderField("Last-Modified", "Sun, 06 Nov 1994 07:49:37 GMT"),
                HeaderField("Date", fuzzedDate),
            ], requestTime: fuzzedTime, responseTime: fuzzedTime)
        let outcome = ByteRange.evaluate(
            requestFields: fields(Array(bytes.dropFirst())), response: response, length: length)
        guard case .part(let part) = outcome else { return nil }
        if part.isEmpty || part.lowerBound < 0 || part.upperBound > length { return "\(part) of \(length) bytes" }
        let fields = ByteRange.partFields(response.fields, part: part, length: length)
        return fields.first("content-length") == String(part.count) ? nil : "another length than the part's"
    }
}
