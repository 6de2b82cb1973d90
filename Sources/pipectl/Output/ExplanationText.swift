import Pipeline
import PipelineSupport
import Variants

extension Explanation {
    func text(_ given: String) -> String {
        let given = SourceURL.redacting(given)
        var text = "source    \(TextTable.plain(given))\n"
        let name = SourceURL.redacting(source)
        if name != given { text += "          stored as \(TextTable.plain(name))\n" }
        text += "policy    \(policy.rawValue)\n\n"
        if stored.isEmpty { text += "stored    nothing\n" }
        for (index, one) in stored.enumerated() {
            text += "stored    \(index + 1) of \(stored.count): status \(one.record.response.status), "
            text +=
                "\(Readable.bytes(one.record.length)), body \(one.body == .none ? "missing" : "in " + one.body.rawValue)\n"
            text += "          \(one.isSelected ? "selected" : "not selected"): \(TextTable.plain(one.reason))\n"
            text += "          digest \(one.record.digest)\n"
            if one.isSelected { text += one.freshnessText() }
        }
        text += "\ndecision  \(decision.rawValue): \(reason)\n"
        if let url {
            text += "request   GET \(TextTable.plain(url))\n"
            for field in request { text += "          \(TextTable.plain(field.name + ": " + Self.shown(field)))\n" }
        }
        if let variant {
            if let key = variant.key {
                text += "variant   key \(key)\n          output \(variant.output.map(\.description) ?? "")\n"
                if let entry = variant.entry, let tier = variant.tier {
                    text += "          in \(tier.rawValue): \(entry.width) × \(entry.height), "
                    text += "\(Readable.bytes(entry.length)), took \(Readable.tenths(entry.cost)) ms to render\n"
                } else {
                    text += "          not stored: it would be rendered\n"
                }
            } else {
                text += "variant   its key depends on the digest of the original, which is not known yet\n"
            }
        }
        return text + "answer    \(answer)\n"
    }

    func json(_ given: String) -> String {
        var json = JSONText()
        json.add("source", SourceURL.redacting(given))
        json.add("identity", SourceURL.redacting(source))
        json.add("policy", policy.rawValue)
        json.add("now", raw: JSONText.thousandths(now))
        json.add("stored", raw: "[" + stored.map(\.json).joined(separator: ",") + "]")
        json.add("decision", decision.rawValue)
        json.add("reason", reason)
        if let url {
            json.add("request") { inner in
                inner.add("url", url)
                inner.add("fields", raw: Self.list(request))
            }
        }
        if let variant {
            json.add("variant") { inner in
                inner.add("key", variant.key)
                inner.add("output", variant.output?.description)
                inner.add("tier", variant.tier?.rawValue)
                inner.add("width", variant.entry?.width)
                inner.add("height", variant.entry?.height)
                inner.add("bytes", variant.entry?.length)
            }
        }
        json.add("answer", answer)
        return json.closed
    }

    /// A field's value without credentials, and without the secrets of URLs.
    private static func shown(_ field: HeaderField) -> String {
        ["authorization", "proxy-authorization", "cookie"].contains(field.name.lowercased())
            ? "…" : SourceURL.hidingSecrets(field.value)
    }

    static func list(_ fields: [HeaderField]) -> String {
        "[" + fields.map { "[\(JSONText.quoted($0.name)),\(JSONText.quoted(shown($0)))]" }.joined(separator: ",") + "]"
    }
}

extension Explanation.Stored {
    fileprivate func freshnessText() -> String {
        func seconds(_ value: Double) -> String { JSONText.thousandths(value) + " s" }
        var text = "          lifetime \(seconds(lifetime.seconds)) by \(lifetime.basis.rawValue)\n"
        for field in basis { text += "            \(TextTable.plain(field.name + ": " + field.value))\n" }
        if let lifetimeLimit { text += "            the redirects allow \(seconds(lifetimeLimit))\n" }
        text += "          age \(seconds(age.currentAge)) = max(apparent \(seconds(age.apparentAge)), "
        text +=
            "Age \(seconds(age.ageValue)) + response delay \(seconds(age.responseDelay))) + resident time \(seconds(age.residentTime))\n"
        text +=
            remaining > 0
            ? "          fresh for another \(seconds(remaining))\n" : "          stale for \(seconds(-remaining))\n"
        let validators = record.response.fields.filter { ["etag", "last-modified"].contains($0.name.lowercased()) }
        text +=
            validators.isEmpty
            ? "          no validators\n"
            : validators.map { "          validator \(TextTable.plain($0.name + ": " + $0.value))\n" }.joined()
        return text
    }

    fileprivate var json: String {
        var json = JSONText()
        json.add("status", record.response.status)
        json.add("digest", record.digest)
        json.add("bytes", record.length)
        json.add("body", body.rawValue)
        json.add("selected", isSelected)
        json.add("reason", reason)
        json.add("lifetime") { inner in
            inner.add("seconds", raw: JSONText.thousandths(lifetime.seconds))
            inner.add("basis", lifetime.basis.rawValue)
            inner.add("fields", raw: Explanation.list(basis))
            if let lifetimeLimit { inner.add("limit", raw: JSONText.thousandths(lifetimeLimit)) }
        }
        json.add("age") { inner in
            inner.add("current", raw: JSONText.thousandths(age.currentAge))
            inner.add("apparent", raw: JSONText.thousandths(age.apparentAge))
            inner.add("received", raw: JSONText.thousandths(age.ageValue))
            inner.add("delay", raw: JSONText.thousandths(age.responseDelay))
            inner.add("resident", raw: JSONText.thousandths(age.residentTime))
        }
        json.add("remaining", raw: JSONText.thousandths(remaining))
        json.add("fields", raw: Explanation.list(record.response.fields))
        return json.closed
    }
}
