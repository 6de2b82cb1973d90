/// The box of a `thumbnail` in pixels. One edge may be nil.
package struct ThumbnailSize: Sendable, Hashable, CustomStringConvertible {
    package var width: Int?
    package var height: Int?

    package init(width: Int?, height: Int?) {
        self.width = width
        self.height = height
    }

    /// The box in recipe syntax: `300x200`, `300x`, `x200`, or `300` for a square.
    package var description: String {
        if let width, width == height { return String(width) }
        return (width.map(String.init) ?? "") + "x" + (height.map(String.init) ?? "")
    }
}

extension Recipe {
    /// Returns the recipe with the box of each `thumbnail` replaced.
    ///
    /// - Parameter change: returns the new box for an existing box. Edges that are nil must stay nil, and other edges
    ///   must be 1…8192.
    package func mappingThumbnails<Failure: Error>(
        _ change: (ThumbnailSize) throws(Failure) -> ThumbnailSize
    ) throws(Failure) -> Recipe {
        var recipe = self
        for (index, step) in steps.enumerated() {
            guard let thumbnail = step as? Thumbnail else { continue }
            let size = try change(ThumbnailSize(width: thumbnail.box.width, height: thumbnail.box.height))
            recipe.steps[index] = thumbnail.setting(\.box, to: PixelBox(width: size.width, height: size.height))
        }
        return recipe
    }
}

extension Catalog {
    /// Returns the catalog name of a step, load option or output. Returns nil if the catalog does not contain the name.
    package static func listedName(ofStep text: some StringProtocol) -> String? {
        let token = String(text.prefix { $0 != ":" })
        let format = ImageFormat(rawValue: token) ?? ImageFormat(fileExtension: token)
        let name = format?.rawValue ?? token
        return entries.contains { $0.token == name } ? name : nil
    }

    /// The names of all steps, load options and outputs.
    package static var listedNames: [String] { tokens }
}
