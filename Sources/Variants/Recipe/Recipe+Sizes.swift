extension Recipe {
    /// The larger edge of each `thumbnail`, in pixels, in order.
    package var thumbnailEdges: [Int] { steps.compactMap { ($0 as? Thumbnail)?.box.larger } }

    /// The recipe with each `thumbnail`'s larger edge replaced; the other edge keeps the ratio.
    ///
    /// - Parameter edge: the new edge, 1…8192, for an edge that is there.
    package func mappingThumbnailEdges(_ edge: (Int) -> Int) -> Recipe {
        var recipe = self
        recipe.steps = steps.map { step in
            guard let thumbnail = step as? Thumbnail else { return step }
            return thumbnail.setting(\.box, to: thumbnail.box.scaled(to: edge(thumbnail.box.larger)))
        }
        return recipe
    }
}

extension PixelBox {
    fileprivate var larger: Int { max(width ?? 0, height ?? 0) }

    /// The box with this as its larger edge, and its ratio as near as whole pixels allow.
    fileprivate func scaled(to edge: Int) -> PixelBox {
        func scaled(_ length: Int) -> Int {
            length == larger ? edge : max(1, Int((Double(length) * Double(edge) / Double(larger)).rounded()))
        }
        return PixelBox(width: width.map(scaled), height: height.map(scaled))
    }
}

extension Catalogue {
    /// The catalogue name of a step, load option or output; nil if the catalogue has no such name.
    package static func listedName(ofStep text: some StringProtocol) -> String? {
        let token = String(text.prefix { $0 != ":" })
        let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token)
        let name = format?.rawValue ?? token
        return entries.contains { $0.token == name } ? name : nil
    }

    /// The names of all steps, load options and outputs.
    package static var listedNames: [String] { tokens }
}
