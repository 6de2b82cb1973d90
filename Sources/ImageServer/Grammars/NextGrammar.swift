import HTTPCaching
import Pipeline
import PipelineFetching
package import PipelineSupport
package import Variants

/// A system with the URLs of the image optimizer of Next.js.
package protocol NextSystem: Sendable {
    static var name: String { get }
}

package enum NextJS: NextSystem {
    package static let name = "next"
}

package enum Vercel: NextSystem {
    package static let name = "vercel"
}

/// The URLs of the image optimizer of Next.js: `{path}?url=&w=&q=`. `docs/grammars.md` describes them.
package struct NextGrammar<System: NextSystem>: MountableGrammar {
    package static var systemName: String { System.name }
    package static var fileMembers: [String] { ["manifest"] }
    package let path: String
    private let settings: NextSettings

    package init(at path: String, _ members: inout GrammarMembers) throws(InvalidSetting) {
        self.path = path
        settings = try NextSettings(&members)
    }

    package var template: String { path }
    package var decidesAccess: Bool { settings.unsigned == true }
    package var opensAllSources: Bool { settings.unsigned == true && !settings.hasPatterns }
    package var formats: [ImageFormat]? { settings.formats }

    package func read(_ target: RequestTarget, _ context: GrammarContext) throws(Problem) -> RoutedRequest {
        let below = target.text.utf8.dropFirst(path.utf8.count).prefix { $0 != UInt8(ascii: "?") }
        guard below.isEmpty || below.elementsEqual("/".utf8) else {
            throw Problem(.unknownPath, "expected \(path)?url=URL&w=WIDTH&q=QUALITY")
        }
        let grant = try context.signature.grant(ifUnsigned: settings.unsigned)
        let query = FormQuery(target.text)
        let (source, text) = try source(query, context)
        let (width, quality) = try numbers(query)
        var routed = RoutedRequest(
            answer: .choice(choice(width, quality, context.accepted)), source: text, grant: grant)
        routed.resolved = source
        routed.freshness = (.seconds(settings.minimumCacheTTL), .seconds(Self.staleSeconds))
        routed.maxRedirects = settings.maximumRedirects
        routed.rescued = [.undecodable, .overLimit, .notAnImage, .renderCrashed]
        routed.present = { [settings] (response, picture) in settings.present(&response, picture, url: text) }
        return routed
    }

    package func shown(_ target: RequestTarget) -> String {
        let query = FormQuery(target.text)
        let numbers = ["w", "q"].compactMap { name in
            query[name].first.flatMap { Int($0) }.map { " \(name)=\($0)" }
        }
        return path + " " + (query["url"].first.map(RequestLog.redacted) ?? "…") + numbers.joined()
    }

    /// An expired picture is used at most a year longer.
    private static var staleSeconds: Int { 31_536_000 }
    /// The maximum length of `url`, in characters.
    private static var urlLimit: Int { 3_072 }

    // MARK: Parameters

    /// Returns the source, and `url` as the client wrote it. Errors are checked in the order of Next.js.
    private func source(
        _ query: FormQuery, _ context: GrammarContext
    ) throws(Problem) -> (BaseURLs.Resolved, text: String) {
        let given = query["url"]
        guard let url = given.first, given.count > 1 || !url.isEmpty else { throw Self.fault("url", "is required") }
        guard given.count == 1 else { throw Self.fault("url", "cannot be an array") }
        guard url.utf16.count <= Self.urlLimit else { throw Self.fault("url", "is too long") }
        guard !url.hasPrefix("//") else { throw Self.fault("url", "cannot be a protocol-relative URL (//)") }
        let notAllowed = Self.fault("url", "is not allowed")
        if url.hasPrefix("/") {
            guard !isRecursive(url) else { throw Self.fault("url", "cannot be recursive") }
            guard let bases = settings.bases else { throw notAllowed }
            let text = PercentText.completed(url)
            guard let plain = try? SourceURL("http://localhost" + text), settings.allowsLocal(plain),
                let source = try? bases.resolved("app:" + text.dropFirst()),
                let parsed = try? SourceURL(source.text), context.allows(source)
            else { throw notAllowed }
            return (BaseURLs.Resolved(text: parsed.normalized), url)
        }
        let isWeb = ["http://", "https://"].contains { url.prefix($0.count).lowercased() == $0 }
        guard isWeb, let parsed = try? SourceURL(PercentText.completed(url)) else {
            throw Self.fault("url", "is invalid")
        }
        let source = BaseURLs.Resolved(text: PercentText.completed(url))
        guard settings.allowsRemote(parsed), context.allows(source) else { throw notAllowed }
        return (source, url)
    }

    /// Whether the path of a relative URL leads back to the optimizer.
    private func isRecursive(_ url: String) -> Bool {
        let path = Substring(url.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") })
        guard let bytes = percentDecoded(path) else { return true }
        return ["/_next/image", self.path].contains { own in
            bytes.ranges(of: Array(own.utf8)).contains { range in
                range.upperBound == bytes.endIndex || bytes[range.upperBound] == UInt8(ascii: "/")
            }
        }
    }

    /// Returns the width and the quality. The syntax of both is checked before the lists.
    private func numbers(_ query: FormQuery) throws(Problem) -> (width: Int, quality: Int) {
        let width = try Self.number(query, "w", "width", "greater than 0", 1...Int.max)
        let quality = try Self.number(query, "q", "quality", "between 1 and 100", 1...100)
        guard settings.widths.contains(width) else { throw Self.fault("w", "(width) of \(width) is not allowed") }
        guard settings.qualities.isEmpty || settings.qualities.contains(quality) else {
            throw Self.fault("q", "(quality) of \(quality) is not allowed")
        }
        return (width, quality)
    }

    private static func number(
        _ query: FormQuery, _ name: String, _ title: String, _ rule: String, _ range: ClosedRange<Int>
    ) throws(Problem) -> Int {
        let given = query[name]
        guard let text = given.first, given.count > 1 || !text.isEmpty else {
            throw fault(name, "(\(title)) is required")
        }
        guard given.count == 1 else { throw fault(name, "(\(title)) cannot be an array") }
        guard text.utf8.allSatisfy(\.isDigit), let number = Int(text), range.contains(number) else {
            throw fault(name, "(\(title)) must be an integer \(rule)")
        }
        return number
    }

    private static func fault(_ name: String, _ problem: String) -> Problem {
        Problem(.malformedRequest, "\"\(name)\" parameter \(problem)")
    }

    // MARK: Picture

    private func choice(_ width: Int, _ quality: Int, _ accepted: [ImageFormat]) -> RecipeChoice {
        let names = accepted.map(\.rawValue).joined(separator: "+")
        return RecipeChoice("next \(width) \(quality) \(names) \(settings.sendsSVG)") {
            [sendsSVG = settings.sendsSVG] (header) throws(PipelineError) in
            switch header.format {
            case .ico, .bmp, .heif, .jxl: return nil
            case .svg:
                guard sendsSVG else {
                    throw PipelineError(.invalidRecipe, "\"url\" parameter is valid but image type is not allowed")
                }
                return nil
            case .gif, .webp, .png, .avif: if header.pages > 1 { return nil }
            default: break
            }
            let own: ImageFormat = header.hasAlpha ? .png : .jpeg
            let format = accepted.first ?? ([.jpeg, .png, .gif].contains(header.format) ? header.format : own)
            let output =
                switch format {
                case .png, .gif: format.rawValue
                case .avif: "avif:\(max(1, quality - 20))"
                default: "\(format.rawValue):\(quality)"
                }
            do throws(RecipeError) { return try Recipe("thumbnail:\(width)x,\(output)") } catch {
                throw PipelineError(.invalidRecipe, error.description)
            }
        }
    }

    package func plainText(of problem: Problem) -> (status: Int, text: String)? {
        let invalid = "\"url\" parameter is valid but upstream response is invalid"
        switch problem.kind {
        case .sourceRefused: return (400, "\"url\" parameter is not allowed")
        case .notAnImage: return (400, "The requested resource isn't a valid image.")
        case .notFound: return (problem.originStatus ?? 404, invalid)
        case .originFailed: return (problem.originStatus.flatMap { $0 >= 400 ? $0 : nil } ?? 500, invalid)
        case .originTimeout: return (504, "\"url\" parameter is valid but upstream response timed out")
        default: return (problem.kind.status, problem.detail ?? problem.kind.title)
        }
    }
}
