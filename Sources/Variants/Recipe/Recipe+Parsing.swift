extension Recipe {
    /// Parses recipe text; presets are expanded, `dpr` is folded into the steps after it. Directly behind a preset, `dpr` counts
    /// for the preset, and an output replaces the preset's own.
    ///
    /// - Parameters:
    ///   - text: steps separated by commas; empty text is the empty recipe. At most 2,000 characters and 32 steps.
    ///   - presets: what `@name` may refer to.
    /// - Throws: `RecipeError`, naming the step, what was expected and the nearest spelling.
    public init(_ text: String, presets: RecipePresets = .none) throws(RecipeError) {
        self.init()
        guard !text.isEmpty else { return }
        guard text.utf8.count <= Self.characterLimit else {
            throw RecipeError(
                expected: "the recipe has \(text.utf8.count) characters; at most \(Self.characterLimit) are allowed")
        }
        var expansion = Expansion(presets: presets)
        try expansion.add(text[...], chain: [], outer: nil)
        var reader = Reader()
        for (index, step) in expansion.steps.enumerated() {
            try reader.read(step, isLast: index == expansion.steps.count - 1)
        }
        if let place = reader.unusedRatio {
            throw Self.unusedRatio(at: place, of: text, hasSteps: !reader.recipe.steps.isEmpty)
        }
        self = reader.recipe
        parsedSteps = stepsDescription
        if text.utf8.first == UInt8(ascii: "@"), RecipeName.isValid(text.dropFirst()) {
            presetName = String(text.dropFirst())
        }
        // The canonical text must itself be a recipe; presets and `dpr` can make it longer than what was written.
        let length = description.utf8.count
        guard length <= Self.characterLimit else {
            throw RecipeError(
                expected:
                    "after expansion the recipe has \(length) characters; at most \(Self.characterLimit) are allowed"
            )
        }
    }

    /// The error for a `dpr` that multiplies nothing. If it comes after the steps, the suggestion begins with it.
    private static func unusedRatio(
        at place: StepArguments.Place, of text: String, hasSteps: Bool
    ) -> RecipeError {
        var steps = text.split(separator: ",")
        steps.insert(steps.remove(at: place.step - 1), at: 0)
        let moved = steps.joined(separator: ",")
        // Without a step, moving it would change nothing.
        let isUseful = hasSteps && place.trail.isEmpty && (try? Recipe(moved)) != nil
        return place.error(
            "`dpr` multiplies the steps after it, and no step follows"
                + (isUseful ? "" : ", as in `dpr:2,thumbnail:300`"), suggestion: isUseful ? moved : nil)
    }
}

/// A step after presets are expanded, and where it was written.
private struct ExpandedStep {
    var text: Substring
    var place: StepArguments.Place
}

private struct Expansion {
    let presets: RecipePresets
    var steps: [ExpandedStep] = []

    /// `chain` names the presets that led here, outermost first; `outer` is where the first of them was written.
    mutating func add(_ text: Substring, chain: [String], outer: StepArguments.Place?) throws(RecipeError) {
        var parts = text.split(separator: ",", omittingEmptySubsequences: false)
        for index in parts.indices.dropFirst() where Self.isPreset(parts[index - 1]) && Self.isRatio(parts[index]) {
            parts.swapAt(index - 1, index)
        }
        for (index, step) in parts.enumerated() {
            var place = outer ?? StepArguments.Place(step: index + 1, text: String(step))
            if let name = chain.last {
                place.trail = "in preset `\(name)`, step \(index + 1), `\(RecipeError.shown(step))`: "
            }
            guard Self.isPreset(step) else {
                guard steps.count < presets.stepLimit else {
                    throw place.error(
                        "a recipe has at most \(presets.stepLimit) steps (limits.steps) after presets are expanded")
                }
                steps.append(ExpandedStep(text: step, place: place))
                continue
            }
            let name = String(step.dropFirst())
            guard let content = presets[name] else { throw unknownPreset(name, place) }
            let path = (chain + [name]).joined(separator: " → ")
            guard !chain.contains(name) else {
                throw place.error("presets refer to each other in a circle: \(path)")
            }
            guard chain.count < RecipePresets.nestingLimit else {
                throw place.error("presets may nest at most \(RecipePresets.nestingLimit) deep: \(path)")
            }
            try add(content[...], chain: chain + [name], outer: outer ?? place)
            // An output at the end replaces the output of the preset before it.
            if index == parts.count - 2, OutputSpecification.Kind(step: parts[index + 1]) != nil,
                let last = steps.last, OutputSpecification.Kind(step: last.text) != nil
            {
                steps.removeLast()
            }
        }
    }

    private static func isRatio(_ step: Substring) -> Bool { step.prefix { $0 != ":" } == PixelRatio.token }

    private static func isPreset(_ step: Substring) -> Bool { step.utf8.first == UInt8(ascii: "@") }

    private func unknownPreset(_ name: String, _ place: StepArguments.Place) -> RecipeError {
        guard !presets.names.isEmpty else { return place.error("unknown preset; none are configured") }
        let nearest = Spelling.nearest(to: name, in: presets.names)
        return place.error("unknown preset", suggestion: nearest.map { "@" + $0 })
    }
}

extension OutputSpecification.Kind {
    /// The output that a step names, also by a file extension; nil if it names none.
    fileprivate init?(step: Substring) {
        let token = String(step.prefix { $0 != ":" })
        let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token)
        self.init(rawValue: format?.rawValue ?? token)
    }
}

private struct Reader {
    var recipe = Recipe()
    private var ratio = 1.0
    /// A `dpr` after which no step has come, unless only an output follows and no step precedes it.
    private(set) var unusedRatio: StepArguments.Place?
    private var loadOptions: Set<String> = []

    mutating func read(_ step: ExpandedStep, isLast: Bool) throws(RecipeError) {
        do throws(RecipeError) {
            try readPlainly(step, isLast: isLast)
        } catch {
            throw FamiliarSpelling.completed(error, for: step.text)
        }
    }

    private mutating func readPlainly(_ step: ExpandedStep, isLast: Bool) throws(RecipeError) {
        var arguments = StepArguments(step.text, place: step.place, ratio: ratio)
        let token = arguments.token
        if let operation = Catalogue.operation(named: token) {
            recipe.steps.append(try Self.make(operation, &arguments, ratio))
            unusedRatio = nil
            return try arguments.finish()
        }
        if let kind = OutputSpecification.Kind(step: step.text) {
            guard isLast else {
                throw arguments.error("an output ends the recipe; expected `\(token)` as the last step only")
            }
            recipe.output = try OutputSpecification(kind, &arguments)
        } else if let option = LoadOption(rawValue: token) {
            guard loadOptions.insert(token).inserted else { throw arguments.error("`\(token)` is given twice") }
            try option.read(&arguments, into: &recipe)
        } else if token == PixelRatio.token {
            ratio = try PixelRatio.read(&arguments)
            // With an output alone, as in `dpr:2,webp`, a template may have put it there.
            unusedRatio = isLast || !recipe.steps.isEmpty ? step.place : nil
        } else if token.isEmpty {
            throw arguments.error("expected the name of a step; remove the extra comma")
        } else if let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token) {
            let known = OutputSpecification.Kind.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            throw arguments.error(
                "\(format.rawValue) files cannot be written; the outputs are \(known)",
                suggestion: format == .heif ? "avif" : nil)
        } else {
            throw arguments.error("unknown step", suggestion: Spelling.nearest(to: token, in: Catalogue.tokens))
        }
        try arguments.finish()
    }

    private static func make<Operation: VariantOperation>(
        _ type: Operation.Type, _ arguments: inout StepArguments, _ ratio: Double
    ) throws(RecipeError) -> any VariantOperation {
        let step = try Operation(&arguments)
        return ratio == 1 ? step : step.multiplied(by: ratio)
    }
}
