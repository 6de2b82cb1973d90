/// Everything that is wrong with the settings of a run, so that one start shows all that is to be mended; the program
/// exits with code 2. It collects, too: what reads settings adds to one of these and goes on.
struct SettingErrors: Error, Sendable, Hashable, CustomStringConvertible {
    /// In the order they were found.
    private var found: [SettingError] = []
    /// Whether the settings file could not be read: what it sets is not known.
    private(set) var lacksFile = false

    /// Lines that are shown at most: a file of another kind may have an error on each of its lines.
    static let limit = 50

    init(_ errors: SettingError...) { add(errors) }

    var isEmpty: Bool { found.isEmpty }

    /// By source: those of the file by line, of the environment, of flags, and those that several settings make together.
    var all: [SettingError] {
        found.enumerated().sorted { a, b in
            let (place, other) = (a.element.place, b.element.place)
            return place == other ? a.offset < b.offset : place < other
        }.map(\.element)
    }

    var lines: [String] {
        let shown = all.prefix(Self.limit).map { TextTable.plain($0.description) }
        return found.count > Self.limit ? shown + ["and \(found.count - Self.limit) more"] : shown
    }

    var description: String { lines.joined(separator: "\n") }

    /// Whether a setting has an error, or may be set otherwise than is known, so that what follows from it says nothing.
    func concern(_ keys: String...) -> Bool { lacksFile || found.contains { $0.key.map(keys.contains) == true } }

    mutating func add(_ errors: [SettingError]) {
        found += errors
        if errors.contains(where: { $0.code == .badFile }) { lacksFile = true }
    }

    /// - Parameter origin: a more precise one than theirs.
    mutating func add(_ errors: SettingErrors, at origin: SettingOrigin? = nil) {
        add(
            errors.found.map { error in
                var error = error
                if let origin { error.origin = origin }
                return error
            })
    }

    mutating func collect(at origin: SettingOrigin? = nil, _ work: () throws(SettingErrors) -> Void) {
        do throws(SettingErrors) { try work() } catch { add(error, at: origin) }
    }

    /// Adds an error that follows from several settings, unless one of these has an error of its own.
    mutating func add(_ error: @autoclosure () -> SettingErrors, following keys: String...) {
        guard !lacksFile, !found.contains(where: { $0.key.map(keys.contains) == true }) else { return }
        found += error().found.map { error in
            var error = error
            error.isCombined = true
            return error
        }
    }

    func check() throws(SettingErrors) { if !isEmpty { throw self } }
}
