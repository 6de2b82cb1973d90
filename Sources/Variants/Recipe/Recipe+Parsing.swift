extension Recipe {
    /// Creates a recipe from recipe text. Expands presets and applies each `dpr` to the steps after it. If a `dpr`
    /// directly follows a preset, it applies to the preset. If an output directly follows a preset, it replaces the
    /// preset's output.
    ///
    /// - Parameters:
    ///   - text: steps separated by commas, at most 2,000 characters and 32 steps. Empty text is the empty recipe.
    ///   - presets: the presets that `@name` can refer to.
    /// - Throws: `RecipeError` with the position of the invalid step, the expected text and the closest valid spelling.
    public init(_ text: String, presets: RecipePresets = .none) throws(RecipeError) {
        self.init()
        guard !text.isEmpty else { return }
        guard text.utf8.count <= Self.characterLimit else {
            throw RecipeError(
                expected: "the recipe has \(text.utf8.count) characters; the maximum is \(Self.characterLimit)")
        }
        var expansion = Expansion(presets: presets)
        try expansion.add(text[...], chain: [], outer: nil)
        var reader = Reader()
        for (index, step) in expansion.steps.enumerated() {
            try reader.read(step, isLast: index == expansion.steps.count - 1)
        }
        if let location = reader.unusedRatio {
            throw Self.unusedRatio(at: location, of: text, hasSteps: !reader.recipe.steps.isEmpty)
        }
        self = reader.recipe
        parsedSteps = stepsDescription
        if text.utf8.first == UInt8(ascii: "@"), RecipeName.isValid(text.dropFirst()) {
            presetName = String(text.dropFirst())
        }
        // The canonical text must also be a valid recipe. Presets and `dpr` can make it longer than the given text.
        let length = description.utf8.count
        guard length <= Self.characterLimit else {
            throw RecipeError(
                expected:
                    "the expanded recipe has \(length) characters; the maximum is \(Self.characterLimit)"
            )
        }
    }

    /// Returns the error for a `dpr` that multiplies nothing. If the `dpr` comes last, the suggestion moves it to the
    /// beginning.
    private static func unusedRatio(
        at location: StepArguments.Location, of text: String, hasSteps: Bool
    ) -> RecipeError {
        var steps = text.split(separator: ",")
        steps.insert(steps.remove(at: location.step - 1), at: 0)
        let moved = steps.joined(separator: ",")
        // Without any other step, moving the `dpr` would have no effect.
        let isUseful = hasSteps && location.trail.isEmpty && (try? Recipe(moved)) != nil
        return location.error(
            "`dpr` applies to later steps, but no step follows"
                + (isUseful ? "" : ", as in `dpr:2,thumbnail:300`"), suggestion: isUseful ? moved : nil)
    }
}

/// A step after preset expansion, and the place where it was written.
private struct ExpandedStep {
    var text: Substring
    var location: StepArguments.Location
}

private struct Expansion {
    let presets: RecipePresets
    var steps: [ExpandedStep] = []

    /// Adds the steps of `text`. `chain` contains the names of the enclosing presets, outermost first. `outer` is the
    /// place where the outermost preset was written.
    mutating func add(_ text: Substring, chain: [String], outer: StepArguments.Location?) throws(RecipeError) {
        var parts = text.split(separator: ",", omittingEmptySubsequences: false)
        for index in parts.indices.dropFirst() where Self.isPreset(parts[index - 1]) && Self.isRatio(parts[index]) {
            parts.swapAt(index - 1, index)
        }
        for (index, step) in parts.enumerated() {
            var location = outer ?? StepArguments.Location(step: index + 1, text: String(step))
            if let name = chain.last {
                location.trail = "in preset `\(name)`, step \(index + 1), `\(RecipeError.shown(step))`: "
            }
            guard Self.isPreset(step) else {
                guard steps.count < presets.stepLimit else {
                    throw location.error(
                        "a recipe has at most \(presets.stepLimit) steps (limits.steps) after presets are expanded")
                }
                steps.append(ExpandedStep(text: step, location: location))
                continue
            }
            let name = String(step.dropFirst())
            guard let content = presets[name] else { throw unknownPreset(name, location) }
            let path = (chain + [name]).joined(separator: " → ")
            guard !chain.contains(name) else {
                throw location.error("the presets refer to each other in a cycle: \(path)")
            }
            guard chain.count < RecipePresets.nestingLimit else {
                throw location.error("presets can be nested at most \(RecipePresets.nestingLimit) levels deep: \(path)")
            }
            try add(content[...], chain: chain + [name], outer: outer ?? location)
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

    private func unknownPreset(_ name: String, _ location: StepArguments.Location) -> RecipeError {
        guard !presets.names.isEmpty else { return location.error("unknown preset, because no presets are configured") }
        let nearest = Spelling.nearest(to: name, in: presets.names)
        return location.error("unknown preset", suggestion: nearest.map { "@" + $0 })
    }
}

extension OutputSpecification.Kind {
    /// Creates the kind of the output that a step names. File extensions are accepted as names. Returns nil if the step
    /// is not an output.
    fileprivate init?(step: Substring) {
        let token = String(step.prefix { $0 != ":" })
        let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token)
        self.init(rawValue: format?.rawValue ?? token)
    }
}

private struct Reader {
    var recipe = Recipe()
    private var ratio = 1.0
    /// The place of a `dpr` that no step follows, or nil if the recipe has no other steps and ends with an output.
    private(set) var unusedRatio: StepArguments.Location?
    private var loadOptions: Set<String> = []

    mutating func read(_ step: ExpandedStep, isLast: Bool) throws(RecipeError) {
        do throws(RecipeError) {
            try readPlainly(step, isLast: isLast)
        } catch {
            throw FamiliarSpelling.completed(error, for: step.text)
        }
    }

    private mutating func readPlainly(_ step: ExpandedStep, isLast: Bool) throws(RecipeError) {
        var arguments = StepArguments(step.text, location: step.location, ratio: ratio)
        let token = arguments.token
        if let operation = Catalog.operation(named: token) {
            recipe.steps.append(try Self.make(operation, &arguments, ratio))
            unusedRatio = nil
            return try arguments.finish()
        }
        if let kind = OutputSpecification.Kind(step: step.text) {
            guard isLast else {
                throw arguments.error("the output `\(token)` must be the last step of the recipe")
            }
            let output = try OutputSpecification(kind, &arguments)
            guard !output.transcodes || recipe.keepsPixels else {
                throw arguments.error(
                    "`transcode` keeps the data of a JPEG, which steps and `orient:off` would change; remove them or "
                        + "`transcode`")
            }
            recipe.output = output
        } else if let option = LoadOption(rawValue: token) {
            guard loadOptions.insert(token).inserted else { throw arguments.error("`\(token)` is given twice") }
            try option.read(&arguments, into: &recipe)
        } else if token == PixelRatio.token {
            ratio = try PixelRatio.read(&arguments)
            // A template may have added the `dpr` to a recipe that consists only of an output, as in `dpr:2,webp`.
            unusedRatio = isLast || !recipe.steps.isEmpty ? step.location : nil
        } else if token.isEmpty {
            throw arguments.error("a step is empty; remove the extra comma")
        } else if let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token) {
            let known = OutputSpecification.Kind.allCases.map { "`\($0.rawValue)`" }.joined(separator: ", ")
            throw arguments.error(
                "\(format.rawValue) files cannot be written; the outputs are \(known)",
                suggestion: format == .heif ? "avif" : nil)
        } else {
            throw arguments.error("unknown step", suggestion: Spelling.nearest(to: token, in: Catalog.tokens))
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
