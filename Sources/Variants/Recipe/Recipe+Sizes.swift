/// The box of a `thumbnail`, in pixels; one edge may be left open.
package struct ThumbnailSize: Sendable, Hashable, CustomStringConvertible {
    package var width: Int?
    package var height: Int?

    package init(width: Int?, height: Int?) {
        self.width = width
        self.height = height
    }

    /// As it may be written in a recipe: `300x200`, `300x`, `x200`, and `300` for a square.
    package var description: String {
        if let width, width == height { return String(width) }
        return (width.map(String.init) ?? "") + "x" + (height.map(String.init) ?? "")
    }
}

extension Recipe {
    /// The recipe with the box of each `thumbnail` replaced.
    ///
    /// - Parameter change: the new box, with the same edges left open, for a box that is there; edges 1…8192.
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
