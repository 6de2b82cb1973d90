/// All errors in the settings of a run, so that one attempt shows all of them. The program exits with code 2. Functions
/// that read settings add errors and continue.
struct SettingErrors: Error, Sendable, Hashable, CustomStringConvertible {
    /// The errors in the order in which they were found.
    private var found: [SettingError] = []
    /// Whether the settings file could not be read, so that its settings are unknown.
    private(set) var lacksFile = false

    /// The maximum number of lines that are shown. A file of a different kind may have an error on each of its lines.
    static let limit = 50

    init(_ errors: SettingError...) { add(errors) }

    var isEmpty: Bool { found.isEmpty }

    /// The errors sorted by origin: the file by line, the environment, flags, and combinations of settings.
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

    /// Whether a setting has an error or may have an unknown value, so that checks that depend on it are meaningless.
    func concern(_ keys: String...) -> Bool { lacksFile || found.contains { $0.key.map(keys.contains) == true } }

    mutating func add(_ errors: [SettingError]) {
        found += errors
        if errors.contains(where: { $0.code == .badFile }) { lacksFile = true }
    }

    /// - Parameter origin: A more precise origin than the origin of the errors.
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

    /// Adds an error that results from several settings, unless one of these settings already has an error.
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
