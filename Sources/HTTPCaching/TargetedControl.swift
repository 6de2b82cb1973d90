import RawStructuredFieldValues

// Targeted fields such as CDN-Cache-Control (RFC 9213) are structured-field dictionaries (RFC 8941 §3.2):
//
//     max-age=600, no-cache="set-cookie", must-revalidate, x=(1 2);p=3
//
// Each member is a cache directive: a key without a value is a directive without an argument, an integer is a number of
// seconds, and a string or token is an argument. Parameters are ignored. A later member replaces an earlier one with
// the same key. If any part does not parse, the complete field is treated as absent (RFC 9213 §2.1).

/// The directives that apply to a response in this cache.
package struct GoverningDirectives: Sendable, Hashable {
    package let control: CacheControl
    /// The lowercase name of the field that contains the directives, which is `cache-control` or a targeted field.
    package let fieldName: String

    /// Whether a targeted field replaces `Cache-Control` and `Expires`.
    package var isTargeted: Bool { fieldName != "cache-control" }

    /// Reads the first of the configured targeted fields that is present, valid and not empty. Otherwise reads
    /// `Cache-Control` (RFC 9213 §2.2). A private cache ignores targeted fields.
    package init(fields: [HeaderField], configuration: CachingConfiguration) {
        if !configuration.isPrivate {
            for name in configuration.targetedFields {
                guard let value = fields.combined(name) else { continue }
                if let directives = TargetedControl.directives(in: value), !directives.isEmpty {
                    control = CacheControl(directives: directives)
                    fieldName = FieldLines.lowercased(name)
                    return
                }
            }
        }
        control = CacheControl(fields: fields)
        fieldName = "cache-control"
    }
}

/// Parses the value of a targeted field.
enum TargetedControl {
    /// The maximum length of a value in bytes. No real policy is that long, and a longer value would be slow to parse,
    /// because the parser searches all earlier keys for each key.
    private static let longest = 2_048

    /// The directives that take an integer. An argument of a different type is stored in a form that does not parse as
    /// a number.
    private static let integers: Set<String> = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"]

    /// Returns the members as directives, or nil if the value is not a dictionary.
    static func directives(in value: String) -> [CacheControl.Directive]? {
        guard value.utf8.count <= longest else { return nil }
        var parser = StructuredFieldValueParser(Array(value.utf8))
        guard let members = try? parser.parseDictionaryFieldValue() else { return nil }
        return members.compactMap { directive($0.0, $0.1) }
    }

    private static func directive(_ name: String, _ member: ItemOrInnerList) -> CacheControl.Directive? {
        guard case .item(let item) = member else { return CacheControl.Directive(name: name, argument: "()") }
        switch item.rfc9651BareItem {
        case .bool(let isSet): return isSet ? CacheControl.Directive(name: name, argument: nil) : nil
        case .integer(let number): return CacheControl.Directive(name: name, argument: String(number))
        case .string(let text), .token(let text):
            return CacheControl.Directive(name: name, argument: integers.contains(name) ? "\"\(text)\"" : text)
        default: return CacheControl.Directive(name: name, argument: "()")
        }
    }
}
