import Pipeline
import Variants

/// The largest results that the server makes, in pixels.
struct IIIFLimits: Sendable {
    let width: Int
    let height: Int
    let area: Int
    /// Whether the operator has set a limit for this grammar.
    let areSet: Bool

    func allow(_ width: Int, _ height: Int) -> Bool {
        width <= self.width && height <= self.height && width * height <= area
    }

    /// Returns the largest size with the ratio of a region.
    ///
    /// - Parameter enlarges: Whether the result may be larger than the region.
    func largest(_ region: (width: Int, height: Int), enlarges: Bool) -> (width: Int, height: Int) {
        if !enlarges, allow(region.width, region.height) { return region }
        let (width, height) = (Double(region.width), Double(region.height))
        let byEdge = min(Double(self.width) / width, Double(self.height) / height)
        let byArea = (Double(area) / (width * height)).squareRoot()
        let factor = min(byEdge, byArea, enlarges ? .infinity : 1)
        let rule: FloatingPointRoundingRule = byArea < byEdge ? .down : .toNearestOrAwayFromZero
        func edge(_ length: Double, _ limit: Int) -> Int { max(1, min(limit, Int((length * factor).rounded(rule)))) }
        let result = (width: edge(width, self.width), height: edge(height, self.height))
        // A narrow region is at least one pixel wide.
        return (min(result.width, max(1, area / result.height)), min(result.height, max(1, area / result.width)))
    }
}

/// The picture that the parameters of a request select from an image.
struct IIIFPicture {
    private let parameters: IIIFParameters
    private let isWhole: Bool
    private let x: Int
    private let y: Int
    private let region: (width: Int, height: Int)
    private let size: (width: Int, height: Int)

    /// - Throws: `invalidRecipe` if the region is empty or outside the image, or if the size is not allowed.
    init(
        _ parameters: IIIFParameters, of header: ImageHeader, _ limits: IIIFLimits
    ) throws(PipelineError) {
        self.parameters = parameters
        let place = Self.place(parameters.region, header.width, header.height)
        guard place.width > 0, place.height > 0, place.x < header.width, place.y < header.height else {
            throw PipelineError(
                .invalidRecipe, "the region is empty or outside the image of \(header.width) × \(header.height) pixels")
        }
        (x, y) = (place.x, place.y)
        region = (min(place.width, header.width - x), min(place.height, header.height - y))
        isWhole = region == (header.width, header.height)
        size = try Self.size(parameters, region, limits)
    }

    private static func place(
        _ region: IIIFParameters.Region, _ width: Int, _ height: Int
    ) -> (x: Int, y: Int, width: Int, height: Int) {
        switch region {
        case .full: return (0, 0, width, height)
        case .square:
            let edge = min(width, height)
            return ((width - edge) / 2, (height - edge) / 2, edge, edge)
        case .pixels(let x, let y, let w, let h): return (x, y, w, h)
        case .percent(let x, let y, let w, let h):
            return (
                percent(x, of: width), percent(y, of: height), w == 0 ? 0 : max(1, percent(w, of: width)),
                h == 0 ? 0 : max(1, percent(h, of: height))
            )
        }
    }

    private static func size(
        _ parameters: IIIFParameters, _ region: (width: Int, height: Int), _ limits: IIIFLimits
    ) throws(PipelineError) -> (width: Int, height: Int) {
        let size: (width: Int, height: Int)
        var isLarger = false
        switch parameters.size {
        case .max: return limits.largest(region, enlarges: parameters.hasCaret && limits.areSet)
        case .pixels(let width?, nil): size = (width, proportional(width, region.height, region.width))
        case .pixels(nil, let height?): size = (proportional(height, region.width, region.height), height)
        case .pixels(let width, let height): size = (width ?? 0, height ?? 0)
        case .fitted(let width, let height):
            size =
                width * region.height <= height * region.width
                ? (width, proportional(width, region.height, region.width))
                : (proportional(height, region.width, region.height), height)
        case .percent(let share):
            size = (percent(share, of: region.width), percent(share, of: region.height))
            isLarger = share > 100_000_000
        }
        let text = "\(size.width) × \(size.height)"
        guard size.width > 0, size.height > 0 else {
            throw PipelineError(.invalidRecipe, "the size of \(text) pixels is empty")
        }
        guard limits.allow(size.width, size.height) else {
            throw PipelineError(.invalidRecipe, "the size of \(text) pixels exceeds a maximum in info.json")
        }
        isLarger = isLarger || size.width > region.width || size.height > region.height
        guard !isLarger || parameters.mayEnlarge else {
            throw PipelineError(
                .invalidRecipe,
                "the size of \(text) pixels is larger than the region of \(region.width) × \(region.height) pixels, which requires "
                    + "^ before the size")
        }
        return size
    }

    /// Returns `share` millionths of a percent of an edge, rounded half up.
    private static func percent(_ share: Int, of edge: Int) -> Int {
        // The product of the largest edge and the largest share does not fit in an integer.
        Int((Double(edge) * Double(share) / 100_000_000).rounded())
    }

    /// Returns `length` × `edge` ÷ `other`, rounded half up, at least 1.
    private static func proportional(_ length: Int, _ edge: Int, _ other: Int) -> Int {
        length == 0 ? 0 : max(1, (2 * length * edge + other) / (2 * other))
    }

    /// The recipe for the picture.
    var recipe: Recipe {
        get throws(PipelineError) {
            var steps = isWhole ? [] : ["crop:\(region.width)x\(region.height)+\(x)+\(y)"]
            if size != region {
                steps.append("thumbnail:\(size.width)x\(size.height)" + (isFit ? "" : ":stretch:up"))
            }
            if parameters.isMirrored { steps.append("flip:h") }
            if parameters.rotation > 0 { steps.append("rotate:" + PlainNumber.text(parameters.rotation)) }
            steps += parameters.quality.steps + [parameters.format.output]
            do throws(RecipeError) { return try Recipe(steps.joined(separator: ",")) } catch {
                throw PipelineError(.invalidRecipe, error.description)
            }
        }
    }

    /// Whether the size is the result of fitting the region into it.
    private var isFit: Bool {
        let (width, height) = size
        return width * region.height <= height * region.width
            ? width < region.width && height == Self.proportional(width, region.height, region.width)
            : height < region.height && width == Self.proportional(height, region.width, region.height)
    }

    /// The parameters in the canonical form, as the end of a URL.
    var canonical: String {
        let place = isWhole ? "full" : "\(x),\(y),\(region.width),\(region.height)"
        let rotation = (parameters.isMirrored ? "!" : "") + PlainNumber.text(parameters.rotation)
        let quality = parameters.quality == .color ? .default : parameters.quality
        return "\(place)/\(canonicalSize)/\(rotation)/\(quality.rawValue).\(parameters.format.rawValue)"
    }

    private var canonicalSize: String {
        if size == region { return parameters.version == .two ? "full" : "max" }
        let isProportional = size.height == Self.proportional(size.width, region.height, region.width)
        if parameters.version == .two, isProportional { return "\(size.width)," }
        let isLarger = size.width > region.width || size.height > region.height
        // A URL cannot contain `^`.
        return (parameters.version == .three && isLarger ? "%5E" : "") + "\(size.width),\(size.height)"
    }
}
