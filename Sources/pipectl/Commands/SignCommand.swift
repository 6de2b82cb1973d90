import ArgumentParser
import ImageServer
import PipelineSupport
import Variants

struct SignCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "sign",
        abstract: "Print the signed path of a variant, an original, its description or an upload.",
        discussion: """
            The keys come from the settings keys and keysFile (docs/signing.md). Source and recipe are each percent-encoded
            as one path segment. The path is printed without the server's address.

            Examples:
              pipectl sign variant thumbnail:300,webp https://example.org/a.jpg
              pipectl sign original https://example.org/a.jpg --key web --expires 1h
              pipectl sign upload thumbnail:300,webp
            """,
        subcommands: [SignVariant.self, SignOriginal.self, SignInfo.self, SignUpload.self])
}

struct SignVariant: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "variant", abstract: "Print the signed path of a variant.")

    @Argument(help: "Recipe text.")
    var recipe: String
    @Argument(help: "An http or https URL, or NAME:PATH with a name of baseURLs.")
    var source: String
    @OptionGroup var signing: SigningOptions
    @OptionGroup var common: CommonOptions

    func run() throws {
        print(try signing.path(.variant, recipe: recipe, source, common))
    }
}

struct SignOriginal: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "original", abstract: "Print the signed path of an original.")

    @Argument(help: "An http or https URL, or NAME:PATH with a name of baseURLs.")
    var source: String
    @OptionGroup var signing: SigningOptions
    @OptionGroup var common: CommonOptions

    func run() throws {
        print(try signing.path(.original, source, common))
    }
}

struct SignInfo: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "info", abstract: "Print the signed path of an original's description.")

    @Argument(help: "An http or https URL, or NAME:PATH with a name of baseURLs.")
    var source: String
    @OptionGroup var signing: SigningOptions
    @OptionGroup var common: CommonOptions

    func run() throws {
        print(try signing.path(.info, source, common))
    }
}

struct SignUpload: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "upload", abstract: "Print the signed path to which a client may POST a picture.")

    @Argument(help: "Recipe text.")
    var recipe: String
    @OptionGroup var signing: SigningOptions
    @OptionGroup var common: CommonOptions

    func run() throws {
        print(try signing.path(.variant, recipe: recipe, nil, common))
    }
}

struct SigningOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Name of the key; required if there are several.", valueName: "id"))
    var key: String?
    @Option(
        help: ArgumentHelp(
            "When the path expires: 90s, 15m, 1h or 7d from now, or Unix seconds.", valueName: "time"))
    var expires: String?

    func path(
        _ route: ImageRoute, recipe: String? = nil, _ source: String?, _ common: CommonOptions
    ) throws -> String {
        let settings = common.collectedSettings()
        try settings.checkSigned(route, recipe: recipe)
        let key = try Self.chosen(key, among: settings.signingKeys())
        let expiry = try expires.map { try Self.expiry($0, now: SystemClock.unix.seconds) }
        let segments = [recipe, source].compactMap(\.self)
        return key.path(route.rawValue, segments.map(PercentText.segment), expiry: expiry)
    }

    static func chosen(_ id: String?, among keys: [SigningKey]) throws(CommandFailure) -> SigningKey {
        let names = keys.map { "`\($0.id)`" }.joined(separator: ", ")
        guard let id else {
            guard let key = keys.first else {
                throw CommandFailure(.usage, "no signing key is configured; set keysFile or keys (docs/signing.md)")
            }
            guard keys.count == 1 else {
                throw CommandFailure(.usage, "several keys are configured; choose one of \(names) with --key")
            }
            return key
        }
        guard let key = keys.first(where: { $0.id == id }) else {
            throw CommandFailure(
                .usage,
                "the key `\(id)` is not configured; "
                    + (keys.isEmpty ? "set keysFile or keys (docs/signing.md)" : "choose one of \(names)"))
        }
        return key
    }

    /// Returns an expiry in Unix seconds. `text` is a duration from now, or Unix seconds.
    static func expiry(_ text: String, now: Double) throws(CommandFailure) -> Int {
        let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        let unit = text.last.flatMap { units[$0] }
        let digits = unit == nil ? text[...] : text.dropLast()
        guard (1...11).contains(digits.utf8.count), digits.utf8.allSatisfy(\.isDigit),
            let number = Int(digits)
        else {
            throw CommandFailure(
                .usage,
                "--expires: expected a duration such as 90s, 15m, 1h or 7d, or a time in Unix seconds, not `\(text)`")
        }
        let expiry = unit.map { Int(now) + number * $0 } ?? number
        guard Double(expiry) > now else {
            throw CommandFailure(
                .usage,
                "--expires \(text) is in the past"
                    + (unit == nil ? "; for \(text) seconds from now, write \(text)s" : ""))
        }
        guard expiry < 100_000_000_000 else {
            throw CommandFailure(
                .usage, "--expires \(text) is too far in the future; the maximum is 99999999999 (Unix seconds)")
        }
        return expiry
    }
}
