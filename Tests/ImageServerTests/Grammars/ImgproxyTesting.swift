import PipelineSupport

@testable import ImageServer
@testable import Variants

/// Reads imgproxy URLs and settles their recipes.
enum ImgproxyTesting {
    static let source = "plain/http://h/a.jpg"
    private static let plainReader = Result { try ImgproxyReader(ImgproxySettings()) }

    static func read(
        _ path: String, now: Double = 0, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyRequest {
        guard let change else { return try plainReader.get().read(path[...], now: now) }
        var settings = ImgproxySettings()
        change(&settings)
        return try ImgproxyReader(settings).read(path[...], now: now)
    }

    static func choice(
        _ options: String, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyChoice {
        let request = try read("/_/" + (options.isEmpty ? "" : options + "/") + source, set: change)
        guard case .picture(let choice) = request.kind else { throw InvalidSetting("no picture") }
        return choice
    }

    static func header(
        _ width: Int = 200, _ height: Int = 100, _ format: ImageFormat = .jpeg, orientation: Int = 1, pages: Int = 1,
        hasAlpha: Bool = false
    ) -> ImageHeader {
        ImageHeader(
            format: format, encodedWidth: width, encodedHeight: height, pages: pages, hasAlpha: hasAlpha,
            orientation: orientation)
    }

    /// Returns the settled recipe without its output.
    static func steps(
        _ options: String, _ header: ImageHeader = header(), set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> String {
        try choice(options, set: change).settle(header, accepted: [])?.stepsDescription ?? "original"
    }

    /// Returns the output of the settled recipe.
    static func output(
        _ options: String, _ header: ImageHeader = header(), accepted: Set<ImageFormat> = [],
        set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> String {
        let recipe = try choice(options, set: change).settle(header, accepted: accepted)
        guard let recipe, let output = recipe.output else { return "original" }
        return output.canonicalText(keepsProfile: recipe.keepsProfile)
    }

    /// Returns the size of the result as the renderer computes it from the settled recipe.
    static func size(
        _ options: String, _ header: ImageHeader = header(), set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> String {
        let recipe = try choice(options, set: change).settle(header, accepted: [])
        var size = PixelSize(width: header.encodedWidth, height: header.encodedHeight)
        if recipe?.orients == true, header.orientation >= 5 { size = size.swapped }
        for case let step as any ResizingOperation in recipe?.steps ?? [] {
            guard let next = try step.resultSize(of: size) else { throw InvalidSetting("unknown size") }
            size = next
        }
        return "\(size.width)x\(size.height)"
    }

    /// Returns the status and the detail of the problem with a URL, or nil if the URL is valid.
    static func problem(
        _ path: String, now: Double = 0, set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyProblem? {
        do { _ = try read(path, now: now, set: change) } catch let problem as ImgproxyProblem { return problem }
        return nil
    }

    /// Returns the problem with settling a recipe, or nil if it settles.
    static func settleProblem(
        _ options: String, _ header: ImageHeader = header(), set change: ((inout ImgproxySettings) -> Void)? = nil
    ) throws -> ImgproxyProblem? {
        let choice = try choice(options, set: change)
        do { _ = try choice.settle(header, accepted: []) } catch { return error }
        return nil
    }
}
