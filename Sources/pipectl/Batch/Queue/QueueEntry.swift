import Pipeline
import PipelineFleet
import PipelineSupport

/// A queue entry: a source and some of its recipes, which share one decode.
struct QueueEntry: Sendable, Hashable {
    struct Recipe: Sendable, Hashable {
        var written: String
        var canonical: String
    }

    var source = BatchSource(source: "")
    /// The position of the source in the input, starting at 1.
    var index = 0
    var recipes: [Recipe] = []
    var hasSeveralRecipes = false

    private init() {}

    /// - Parameter items: The items of one source.
    init?(_ items: [BatchItem]) {
        guard let first = items.first else { return nil }
        (source, index, hasSeveralRecipes) = (first.source, first.index, first.hasSeveralRecipes)
        recipes = items.map { Recipe(written: $0.written, canonical: $0.canonical) }
        // An absolute path means the same file for every worker.
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

    /// Returns the report lines for an entry for which all recipes have failed.
    func failed(_ failure: BatchFailure) -> [ItemJSON] {
        recipes.map { ItemJSON(source: source.source, recipe: $0.canonical, error: failure) }
    }

    var bytes: [UInt8] { Array(json.utf8) }

    /// Parses a queue payload, with or without a signature. Returns nil if a different version wrote the payload.
    init?(payload: [UInt8]) { self.init(QueueKey.parts(payload).entry) }
}

extension QueueEntry: JSONRecord {
    static var blank: Self { Self() }

    mutating func visit(_ members: inout JSONMembers) {
        members.version(1)
        members("source", &source.source)
        members("folder", &source.folder, unless: "")
        members("name", &source.name)
        members("index", &index)
        members("found", &source.isFound, unless: false)
        members("several", &hasSeveralRecipes, unless: false)
        var (written, canonical) = (recipes.map(\.written), recipes.map(\.canonical))
        members("written", &written)
        members("canonical", &canonical)
        guard members.isReading else { return }
        members.require(
            written.count == canonical.count && (1...2 * BatchProducer.recipesAtOnce).contains(written.count))
        recipes = zip(written, canonical).map { Recipe(written: $0, canonical: $1) }
    }
}

/// The options shared by all entries of a queued batch.
struct QueueOptions: Sendable, Hashable {
    /// The output folder: an absolute path, or a folder in a bucket.
    var output: String
    var cacheControl: String?
    var nameTemplate: String?
    var policy: CachePolicy?
    /// The SHA-256 digest of inputs and recipes, which are not stored in the queue.
    var inputs: String

    var bytes: [UInt8] { Array(json.utf8) }

    /// Returns the name template for items. An item has the same name on every worker and at every attempt, and no two
    /// items have the same name.
    func template(hasSeveralRecipes: Bool) -> String {
        nameTemplate ?? (hasSeveralRecipes ? "{stem}-{recipe}-{index}.{ext}" : "{stem}-{index}.{ext}")
    }

    /// Returns the reason why several workers cannot use a name template, or nil if they can.
    static func refusal(ofTemplate template: String?) -> String? {
        guard let template, template.firstRange(of: "{key}") == nil else { return nil }
        if let place = template.firstRange(of: "{index}") {
            // {stem}{index} would be `a12` for stem `a1` with index 2, and also for stem `a` with index 12.
            let neighbors = [template[..<place.lowerBound].last, template[place.upperBound...].first]
            if neighbors.allSatisfy({ $0.map { !"0123456789{}".contains($0) } ?? true }) { return nil }
        }
        return """
            with --queue, --name must contain {key}, or an {index} that is not next to a digit or another placeholder: workers write \
            at the same time and do not know each other's file names
            """
    }
}

extension QueueOptions: JSONRecord {
    static var blank: Self { Self(output: "", cacheControl: nil, nameTemplate: nil, policy: nil, inputs: "") }

    mutating func visit(_ members: inout JSONMembers) {
        members.version(1)
        members("output", &output)
        members("cacheControl", &cacheControl)
        members("name", &nameTemplate)
        members("policy", &policy)
        members("inputs", &inputs)
        // The value is sent as a header field.
        if members.isReading { members.require(cacheControl.map(BucketOutput.isCacheControl) != false) }
    }
}

extension CachePolicy: JSONMember {}

extension PipelineError.Code {
    static let abandoned = Self(
        "abandoned", 1, 500, "no worker finished the item within the allowed number of attempts")
}
