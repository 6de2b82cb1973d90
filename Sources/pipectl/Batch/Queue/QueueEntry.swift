import Pipeline
import PipelineFleet
import PipelineSupport

/// An entry of a batch in a queue: a source and some of its recipes, which share one decode.
struct QueueEntry: Sendable, Hashable {
    struct Recipe: Sendable, Hashable {
        var written: String
        var canonical: String
    }

    var source: BatchSource
    /// Position of the source in the input, from 1.
    var index: Int
    var recipes: [Recipe]
    var hasSeveralRecipes: Bool

    /// - Parameter items: of one source.
    init?(_ items: [BatchItem]) {
        guard let first = items.first else { return nil }
        (source, index, hasSeveralRecipes) = (first.source, first.index, first.hasSeveralRecipes)
        recipes = items.map { Recipe(written: $0.written, canonical: $0.canonical) }
        // A path means the same to every worker.
        if source.source.firstRange(of: "://") == nil, ImageSource(source.source).storedName?.hasPrefix("file:") == true
        {
            source.source = absolutePath(source.source)
        }
    }

    var items: [BatchItem] {
        recipes.map {
            BatchItem(
                source: source, index: index, written: $0.written, canonical: $0.canonical,
                hasSeveralRecipes: hasSeveralRecipes)
        }
    }

    // MARK: As JSON

    var bytes: [UInt8] {
        var json = JSONText()
        json.add("version", 1)
        json.add("source", source.source)
        if !source.folder.isEmpty { json.add("folder", source.folder) }
        json.add("name", source.name)
        json.add("index", index)
        if source.isFound { json.add("found", true) }
        if hasSeveralRecipes { json.add("several", true) }
        json.add("written", texts: recipes.map(\.written))
        json.add("canonical", texts: recipes.map(\.canonical))
        return Array(json.closed.utf8)
    }

    /// From what a queue holds, signed or not; nil for what another version has written.
    init?(payload: [UInt8]) { self.init(QueueKey.parts(payload).entry) }

    /// nil for what another version has written.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSONParser.parse(bytes), json["version"] == .int(1), let source = json["source"]?.text,
            case .int(let index)? = json["index"], let written = json["written"]?.texts,
            let canonical = json["canonical"]?.texts, written.count == canonical.count, !written.isEmpty
        else { return nil }
        self.source = BatchSource(source: source)
        self.source.folder = json["folder"]?.text ?? ""
        self.source.name = json["name"]?.text
        self.source.isFound = json["found"] == .bool(true)
        self.index = index
        recipes = zip(written, canonical).map { Recipe(written: $0, canonical: $1) }
        hasSeveralRecipes = json["several"] == .bool(true)
    }
}

/// What is the same for all entries of a batch in a queue.
struct QueueOptions: Sendable, Hashable {
    /// An absolute folder, or one of a bucket.
    var output: String
    var cacheControl: String?
    var nameTemplate: String?
    var policy: CachePolicy?
    /// The SHA-256 of inputs and recipes, which are not in the queue.
    var inputs: String

    var bytes: [UInt8] {
        var json = JSONText()
        json.add("version", 1)
        json.add("output", output)
        json.add("cacheControl", cacheControl)
        json.add("name", nameTemplate)
        json.add("policy", policy?.rawValue)
        json.add("inputs", inputs)
        return Array(json.closed.utf8)
    }

    /// nil for what another version has written.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSONParser.parse(bytes), json["version"] == .int(1), let output = json["output"]?.text,
            let inputs = json["inputs"]?.text
        else { return nil }
        (self.output, self.inputs) = (output, inputs)
        (cacheControl, nameTemplate) = (json["cacheControl"]?.text, json["name"]?.text)
        // It becomes a field of a request.
        guard cacheControl.map(BucketOutput.isCacheControl) != false else { return nil }
        policy = json["policy"]?.text.flatMap { CachePolicy(rawValue: $0) }
    }

    init(output: String, cacheControl: String?, nameTemplate: String?, policy: CachePolicy?, inputs: String) {
        (self.output, self.cacheControl, self.nameTemplate) = (output, cacheControl, nameTemplate)
        (self.policy, self.inputs) = (policy, inputs)
    }

    /// The template of an item's name: the same on every worker and at every try, and no other item's.
    func template(hasSeveralRecipes: Bool) -> String {
        nameTemplate ?? (hasSeveralRecipes ? "{stem}-{recipe}-{index}.{ext}" : "{stem}-{index}.{ext}")
    }

    /// Why several workers cannot name their outputs by a template; nil if they can.
    static func refusal(ofTemplate template: String?) -> String? {
        guard let template, template.firstRange(of: "{key}") == nil else { return nil }
        if let place = template.firstRange(of: "{index}") {
            // {stem}{index} is a12 for a1 and 2, and for a and 12.
            let neighbours = [template[..<place.lowerBound].last, template[place.upperBound...].first]
            if neighbours.allSatisfy({ $0.map { !"0123456789{}".contains($0) } ?? true }) { return nil }
        }
        return """
            --name needs {key} with --queue, or {index} apart from digits and other placeholders: several workers write at \
            once, and none knows the others' names
            """
    }
}

extension PipelineError.Code {
    static let abandoned = Self(
        "abandoned", 1, 500, "no worker of a queue finished the item in as many tries as allowed")
}

extension JSONValue {
    var text: String? { if case .string(let text) = self { text } else { nil } }
    var texts: [String]? {
        guard case .list(let values) = self else { return nil }
        let texts = values.compactMap(\.text)
        return texts.count == values.count ? texts : nil
    }
    fileprivate var number: Double? {
        switch self {
        case .int(let number): Double(number)
        case .double(let number): number
        default: nil
        }
    }
    var whole: Int? { if case .int(let number) = self { number } else { nil } }
    fileprivate var truth: Bool? { if case .bool(let value) = self { value } else { nil } }
}

extension ItemJSON {
    /// From `line`; nil for what is no line of a report.
    init?(line: some StringProtocol) {
        guard let json = try? JSONParser.parse(Array(line.utf8)), let source = json["source"]?.text,
            let recipe = json["recipe"]?.text, let outcome = json["outcome"]?.text.flatMap(ItemOutcome.init)
        else { return nil }
        self.init(source: source, recipe: recipe, outcome: outcome)
        (key, output, written) = (json["key"]?.text, json["output"]?.text, json["written"]?.truth)
        originalOutcome = json["originalOutcome"]?.text.map { OriginalOutcome(rawValue: $0) }
        (collapsed, damaged) = (json["collapsed"]?.truth, json["damaged"]?.truth)
        (bytes, width, height) = (json["bytes"]?.whole, json["width"]?.whole, json["height"]?.whole)
        (format, digest) = (json["format"]?.text, json["digest"]?.text)
        if let times = json["milliseconds"] {
            func time(_ name: String) -> Double { times[name]?.number ?? 0 }
            milliseconds = Timings(
                queue: time("queue"), fetch: time("fetch"), decode: time("decode"), operations: time("operations"),
                encode: time("encode"), store: time("store"), total: time("total"))
        }
        if let code = json["error"]?["code"]?.text, let message = json["error"]?["message"]?.text {
            error = BatchFailure(code: PipelineError.Code.ofReports(code), message: message)
        }
    }
}

extension PipelineError.Code {
    /// The code of a name in a report.
    fileprivate static func ofReports(_ name: String) -> Self { ofItems.first { $0.name == name } ?? Self(name) }
}
