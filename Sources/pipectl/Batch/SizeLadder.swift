import Pipeline
import Variants

/// The box of a recipe that only fits the picture into a box, such as `thumbnail:640x,avif`.
///
/// Fitting never enlarges a picture, so all boxes that are larger than the original lead to the same result.
struct FittedBox: Sendable, Hashable {
    /// The maximum width and height in pixels, or nil if they are unlimited.
    var width: Int?
    var height: Int?
    /// The steps after the size in the recipe.
    var rest: String

    /// Returns nil if the recipe does more than fit the picture into a box.
    ///
    /// - Parameter recipe: A recipe in canonical form.
    init?(_ recipe: String) {
        let steps = recipe.split(separator: ",", maxSplits: 1).map(String.init)
        guard let first = steps.first, first.hasPrefix("thumbnail:") else { return nil }
        let edges = first.dropFirst("thumbnail:".count).split(separator: "x", omittingEmptySubsequences: false)
        guard edges.count == 2, edges.allSatisfy({ $0.isEmpty || Int($0) != nil }) else { return nil }
        rest = steps.count > 1 ? steps[1] : ""
        // Later steps may change the size, so the size of the result would not show whether this step changed it.
        guard rest.isEmpty || (try? Recipe(rest))?.steps.isEmpty == true else { return nil }
        (width, height) = (Int(edges[0]), Int(edges[1]))
    }

    func isLarger(than other: FittedBox) -> Bool {
        (width ?? .max, height ?? .max) > (other.width ?? .max, other.height ?? .max)
    }

    /// Whether a result of this size touches neither edge of the box, so that the picture was not reduced.
    func exceedsBothEdges(_ size: (width: Int, height: Int)) -> Bool {
        size.width < width ?? .max && size.height < height ?? .max
    }

    func holds(_ size: (width: Int, height: Int)) -> Bool {
        size.width <= width ?? .max && size.height <= height ?? .max
    }
}

extension BatchRendering {
    /// Returns a render for each item of a source. Sizes larger than the original share one render. The largest box of
    /// a format is rendered first. If the picture was not reduced, the other boxes that contain the picture share the
    /// variant.
    func renders(of items: [BatchItem]) -> [@Sendable () async -> BatchOutcome] {
        let boxes = items.map { $0.failure == nil ? FittedBox($0.canonical) : nil }
        var largest: [String: (at: Int, box: FittedBox)] = [:]
        for (at, box) in boxes.enumerated() {
            if let box, largest[box.rest]?.box.isLarger(than: box) != true { largest[box.rest] = (at, box) }
        }
        let first = largest.mapValues { top in
            let item = items[top.at]
            return (top.at, top.box, Task { await render(source: item.source, recipe: item.canonical) })
        }
        return zip(items, boxes).enumerated().map { at, pair in
            let (item, box) = pair
            let top = box.flatMap { first[$0.rest] }
            return {
                if let box, let (largestAt, largest, task) = top {
                    let outcome = await task.value
                    if largestAt == at { return outcome }
                    if case .variant(var variant) = outcome, let width = variant.item.width,
                        let height = variant.item.height, largest.exceedsBothEdges((width, height)),
                        box.holds((width, height))
                    {
                        variant.item.recipe = item.canonical
                        variant.item.collapsed = true
                        return .variant(variant)
                    }
                }
                return await render(source: item.source, recipe: item.canonical)
            }
        }
    }
}
