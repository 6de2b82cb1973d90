@testable import HTTPCaching
import TestSupport

@testable import Pipeline

extension PipelineFuzzTests {
    /// `Cache-Control` and targeted fields: seconds within their range, an unknown directive changes nothing.
    static let cacheControlTarget = FuzzTarget(
        "cache-control",
        words: [
            "Cache-Control: ", "CDN-Cache-Control: ", "max-age=", "s-maxage=60", "no-cache", "no-cache=\"set-cookie\"",
            "private", "no-store", "must-understand", "stale-while-revalidate=", "stale-if-error=", "99999999999999",
            "-1", "1.5", "\"", "\\", ",", ";", "=", "?1", "?0", ":YWJj:", "(1 2)", "*", " ", "\t", "\n",
        ]
    ) { bytes in
        let fields = fields(bytes)
        let control = CacheControl(fields: fields)
        let extended = CacheControl(fields: fields + [HeaderField("Cache-Control", "x-unknown=5")])
        for name in ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error", "min-fresh"] {
            let seconds = control.seconds(name)
            if case .value(let value) = seconds, !(0...1 << 31).contains(value) { return "\(name) of \(value)" }
            if extended.seconds(name) != seconds { return "an unknown directive changes \(name)" }
        }
        if control.forbidsReuse != extended.forbidsReuse || control.isPrivate != extended.isPrivate {
            return "an unknown directive changes what may be reused"
        }
        if control.forbidsReuse, !control.fieldsToValidate.isEmpty { return "no-cache for a part and for the whole" }
        let governing = GoverningDirectives(fields: fields, configuration: CachingConfiguration())
        if governing.isTargeted, governing.control.directives.isEmpty { return "a targeted field without directives" }
        return nil
    }
}
