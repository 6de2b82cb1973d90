import PipelineSupport
import Variants

/// The value of `operations` in a URL of imaginary: a list of objects with `operation`, `params` and `ignore_failure`.
struct ImaginaryOperations {
    private var steps: [String] = []
    /// Whether the orientation is applied, which the first operation decides. Nil if there was none yet.
    private var isUpright: Bool?
    private var type: String?
    private var quality: Int?
    private var keepsNothing = false

    /// The maximum number of operations, as in imaginary.
    private static let limit = 10

    /// Whether `Accept` may choose the format.
    var negotiates: Bool { type == "auto" }

    /// - Throws: a `Problem` with status 400 that names the first operation or parameter that is not supported.
    init(_ text: String) throws(Problem) {
        let value: JSONValue
        do throws(JSONParser.Malformed) { value = try JSONParser.parse(Array(text.utf8)) } catch {
            throw Problem(.malformedRequest, "`operations` is not valid JSON: \(error)")
        }
        guard case .list(let operations) = value, (1...Self.limit).contains(operations.count) else {
            throw Problem(.malformedRequest, "`operations` must be a list of 1 to \(Self.limit) operations")
        }
        for operation in operations {
            var (given, next) = (try ImaginaryOperation(operation), self)
            do throws(Problem) {
                try next.take(&given)
                self = next
            } catch {
                guard given.ignoresFailure else { throw error }
            }
        }
    }

    /// Returns the recipe of all operations.
    ///
    /// - Parameter accepted: The formats that the client accepts, best first.
    func recipe(_ accepted: [ImageFormat]) throws(Problem) -> Recipe {
        let format = type.flatMap { ImageFormat.outputs[$0] } ?? (negotiates ? accepted.first : nil)
        var output = [format?.rawValue ?? "original"]
        // The quality has no effect on lossless formats.
        if let quality, format.map({ [.jpeg, .webp, .avif, .jxl].contains($0) }) ?? true {
            output.append("\(quality)")
        }
        if keepsNothing { output.append("keep=none") }
        do throws(RecipeError) {
            return try Recipe((steps + [output.joined(separator: ":")]).joined(separator: ","))
        } catch {
            throw Problem(.invalidRecipe, error.description)
        }
    }

    private mutating func take(_ given: inout ImaginaryOperation) throws(Problem) {
        let staysTurned = try given.flag("norotation") ?? false
        let turns = given.name == "autorotate" || !staysTurned
        if isUpright == nil, !turns { steps.append("orient:off") }
        guard isUpright != false || !turns else {
            throw given.fault("`norotation` must be as in the first operation")
        }
        isUpright = isUpright ?? turns
        if let step = try Self.step(&given) { steps.append(step) }
        let name = try given.text("type")
        if name == nil, given.name == "convert" { throw given.fault("`type` is required") }
        if let name {
            guard name == "auto" || ImageFormat.outputs[name] != nil else {
                throw given.fault(
                    "`type` must be one of auto, \(ImageFormat.outputs.keys.sorted().joined(separator: ", "))")
            }
            type = name
        }
        quality = try given.integer("quality", 1...100) ?? quality
        keepsNothing = try given.flag("stripmeta") == true || keepsNothing
        // Variants have no profile, because their colors are converted to sRGB.
        _ = try given.flag("noprofile")
        try given.finish()
    }

    /// Returns the step of an operation. Returns nil if the operation only changes the output.
    private static func step(_ given: inout ImaginaryOperation) throws(Problem) -> String? {
        switch given.name {
        case "autorotate", "convert": return nil
        case "fit": return "thumbnail:" + (try given.box())
        case "thumbnail": return "thumbnail:" + (try given.box(needsBoth: false))
        case "smartcrop": return "thumbnail:\(try given.box()):fill:gravity=attention"
        case "crop":
            let gravity = try given.text("gravity") ?? "centre"
            guard ["centre", "north", "south", "west", "east", "smart"].contains(gravity) else {
                throw given.fault("`gravity` must be centre, north, south, west, east or smart")
            }
            return "thumbnail:\(try given.box()):fill:gravity=\(gravity == "smart" ? "attention" : gravity)"
        case "resize", "enlarge":
            let enlarges = given.name == "enlarge"
            if try given.flag("force") ?? false { return "thumbnail:\(try given.box()):stretch:up" }
            let fills = !(try given.flag("nocrop") ?? !enlarges)
            let box = try given.box(needsBoth: fills || enlarges)
            return "thumbnail:" + box + (fills ? ":fill" : "") + (enlarges ? ":up" : "")
        case "extract":
            let (width, height) = (
                try given.required("areawidth", 1...65_535), try given.required("areaheight", 1...65_535)
            )
            let left = try given.integer("left", 0...65_535) ?? 0
            return "crop:\(width)x\(height)+\(left)+\(try given.required("top", 0...65_535))"
        case "rotate":
            let angle = try given.required("rotate", 0...360)
            guard angle.isMultiple(of: 90) else { throw given.fault("`rotate` must be a multiple of 90") }
            return angle % 360 == 0 ? nil : "rotate:\(angle)"
        case "flip": return "flip:v"
        case "flop": return "flip:h"
        case "blur":
            let text = try given.text("sigma") ?? ""
            guard let sigma = Double(text), text.utf8.allSatisfy({ $0.isDigit || $0 == 0x2E }),
                (0.3...100).contains(sigma)
            else {
                throw given.fault("`sigma` must be a number between 0.3 and 100")
            }
            return "blur:\(sigma)"
        default: throw given.fault("this operation is not supported")
        }
    }
}

/// One operation and its parameters. Each accessor removes a parameter, and `finish` throws if some are left.
private struct ImaginaryOperation {
    let name: String
    let ignoresFailure: Bool
    private var parameters: [JSONValue.Member] = []

    init(_ value: JSONValue) throws(Problem) {
        guard case .object(let members) = value,
            case .string(let name)? = members.first(where: { $0.name == "operation" })?.value,
            members.allSatisfy({ ["operation", "params", "ignore_failure"].contains($0.name) })
        else {
            throw Problem(
                .malformedRequest,
                "each member of `operations` must be an object of `operation`, `params` and `ignore_failure`")
        }
        self.name = name
        ignoresFailure = members.contains { $0.name == "ignore_failure" && $0.value == .bool(true) }
        guard let given = members.first(where: { $0.name == "params" })?.value else { return }
        guard case .object(let parameters) = given else { throw fault("`params` must be an object") }
        self.parameters = parameters
    }

    func fault(_ problem: String) -> Problem { Problem(.invalidRecipe, "`\(name)`: \(problem)") }

    /// Returns a parameter as text. Clients also write numbers and flags as JSON strings.
    mutating func text(_ parameter: String) throws(Problem) -> String? {
        guard let index = parameters.firstIndex(where: { $0.name == parameter }) else { return nil }
        switch parameters.remove(at: index).value {
        case .string(let text): return text
        case .int(let number): return "\(number)"
        case .double(let number): return "\(number)"
        case .bool(let isTrue): return isTrue ? "true" : "false"
        case .null, .list, .object: throw fault("`\(parameter)` must be a text, a number, or true or false")
        }
    }

    mutating func flag(_ parameter: String) throws(Problem) -> Bool? {
        guard let text = try text(parameter) else { return nil }
        guard ["true", "false"].contains(text) else { throw fault("`\(parameter)` must be true or false") }
        return text == "true"
    }

    mutating func integer(_ parameter: String, _ range: ClosedRange<Int>) throws(Problem) -> Int? {
        guard let text = try text(parameter) else { return nil }
        guard text.utf8.allSatisfy(\.isDigit), let number = Int(text), range.contains(number) else {
            throw fault("`\(parameter)` must be a whole number between \(range.lowerBound) and \(range.upperBound)")
        }
        return number
    }

    mutating func required(_ parameter: String, _ range: ClosedRange<Int>) throws(Problem) -> Int {
        guard let number = try integer(parameter, range) else { throw fault("`\(parameter)` is required") }
        return number
    }

    /// Returns `width` and `height` as a box, such as `300x200`, `300x` or `x200`.
    mutating func box(needsBoth: Bool = true) throws(Problem) -> String {
        // 0 means that the edge is not given.
        func edge(_ parameter: String) throws(Problem) -> Int? {
            let length = try integer(parameter, 0...8192)
            return length == 0 ? nil : length
        }
        let (width, height) = (try edge("width"), try edge("height"))
        guard needsBoth ? width != nil && height != nil : width != nil || height != nil else {
            throw fault(needsBoth ? "`width` and `height` are required" : "`width` or `height` is required")
        }
        return (width.map { "\($0)" } ?? "") + "x" + (height.map { "\($0)" } ?? "")
    }

    func finish() throws(Problem) {
        guard let other = parameters.first else { return }
        throw fault("the parameter `\(other.name)` is not supported")
    }
}
