import Pipeline
import Variants

/// The box of a recipe that only fits the picture into a box, such as `thumbnail:640x,avif`.
///
/// Fitting never enlarges, so every box that holds the whole original leads to the same picture.
struct FittedBox: Sendable, Hashable {
    /// nil for an edge of any length.
    var width: Int?
    var height: Int?
    /// The steps after the size in the recipe.
    var rest: String

    /// - Parameter recipe: canonical; nil is returned for other recipes.
    init?(_ recipe: String) {
        let steps = recipe.split(separator: ",", maxSplits: 1).map(String.init)
        guard let first = steps.first, first.hasPrefix("thumbnail:") else { return nil }
        let edges = first.dropFirst("thumbnail:".count).split(separator: "x", omittingEmptySubsequences: false)
        guard edges.count == 2, edges.allSatisfy({ $0.isEmpty || Int($0) != nil }) else { return nil }
        rest = steps.count > 1 ? steps[1] : ""
        // Later steps may change the size, so that the result does not show whether this one did.
        guard rest.isEmpty || (try? Recipe(rest))?.steps.isEmpty == true else { return nil }
        (width, height) = (Int(edges[0]), Int(edges[1]))
    }

    func isLarger(than other: FittedBox) -> Bool {
        (width ?? .max, height ?? .max) > (other.width ?? .max, other.height ?? .max)
    }

    /// Whether a result of this size fills neither edge, so that the picture was not made smaller.
    func leaves(_ size: (width: Int, height: Int)) -> Bool {
        size.width < width ?? .max && size.height < height ?? .max
    }

    func holds(_ size: (width: Int, height: Int)) -> Bool {
        size.width <= width ?? .max && size.height <= height ?? .max
    }
}

extension BatchRendering {
    /// Returns a render for each item of one source. Sizes above the original share one: the largest box of a format is
    /// rendered first. If it did not make the picture smaller, the other boxes that hold the picture share its variant.
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
                        let height = variant.item.height, largest.leaves((width, height)), box.holds((width, height))
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
