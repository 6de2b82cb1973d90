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
                "\(Readable.bytes(one.record.length)), body \(one.body.map { "in \($0)" } ?? "missing")\n"
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
                if let recipe = variant.recipe { text += "recipe    \(recipe.description)\n" }
                text += "variant   key \(key)\n          output \(variant.output.map(\.description) ?? "")\n"
                if let reason = variant.refusedTranscoding {
                    text += "          not transcoded, because \(reason)\n"
                }
                if let entry = variant.entry, let tier = variant.tier {
                    text += "          in \(tier.rawValue): \(entry.width) × \(entry.height), "
                    text += "\(Readable.bytes(entry.length)), took \(Readable.tenths(entry.cost)) ms to render\n"
                } else {
                    text += "          not stored; it would be rendered\n"
                }
            } else {
                text += "variant   key unknown, because it depends on the digest of the original\n"
            }
        }
        return text + "answer    \(answer)\n"
    }

    func json(_ given: String) -> String {
        JSONText([
            "source": SourceURL.redacting(given), "identity": SourceURL.redacting(source), "policy": policy.rawValue,
            "now": now, "stored": stored.map(\.object), "decision": decision.rawValue, "reason": reason,
            "request": url.map { JSONText(["url": $0, "fields": Self.list(request)]) },
            "variant": variant.map { variant in
                JSONText([
                    "key": variant.key, "recipe": variant.recipe?.description, "output": variant.output?.description,
                    "notTranscoded": variant.refusedTranscoding, "tier": variant.tier?.rawValue,
                    "width": variant.entry?.width, "height": variant.entry?.height, "bytes": variant.entry?.length,
                ])
            }, "answer": answer,
        ]).json
    }

    /// Returns the value of a header field without credentials and without secrets in URLs.
    private static func shown(_ field: HeaderField) -> String {
        ["authorization", "proxy-authorization", "cookie"].contains(field.name.lowercased())
            ? "…" : SourceURL.hidingSecrets(field.value)
    }

    static func list(_ fields: [HeaderField]) -> [[String]] { fields.map { [$0.name, shown($0)] } }
}

extension Explanation.Stored {
    fileprivate func freshnessText() -> String {
        func seconds(_ value: Double) -> String { JSONText.thousandths(value) + " s" }
        var text = "          lifetime \(seconds(lifetime.seconds)) by \(lifetime.basis.rawValue)\n"
        for field in basis { text += "            \(TextTable.plain(field.name + ": " + field.value))\n" }
        if let lifetimeLimit { text += "            limited to \(seconds(lifetimeLimit)) by the redirects\n" }
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

    fileprivate var object: JSONText {
        JSONText([
            "status": record.response.status, "digest": record.digest, "bytes": record.length,
            "body": body?.rawValue ?? "none",
            "selected": isSelected, "reason": reason,
            "lifetime": JSONText([
                "seconds": lifetime.seconds, "basis": lifetime.basis.rawValue, "fields": Explanation.list(basis),
                "limit": lifetimeLimit,
            ]),
            "age": JSONText([
                "current": age.currentAge, "apparent": age.apparentAge, "received": age.ageValue,
                "delay": age.responseDelay, "resident": age.residentTime,
            ]), "remaining": remaining, "fields": Explanation.list(record.response.fields),
        ])
    }
}
