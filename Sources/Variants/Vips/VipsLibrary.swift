import CVips
import Synchronization

/// Loads libvips into this process. libvips is loaded and started at the first render, never before.
package enum VipsLibrary {
    /// Sets the library file to load in this process instead of the one that the loader finds. Has no effect once
    /// libvips is loaded.
    package static func choose(_ path: String) { cvips_choose(path) }

    /// Loads libvips if necessary. If that fails, throws `libraryUnavailable` with a message that names the package to
    /// install.
    static func load() throws(RenderError) {
        if let failure = cvips_load() { throw RenderError(.libraryUnavailable, String(cString: failure)) }
        loaded.store(true, ordering: .releasing)
    }

    private static let loaded = Atomic(false)
    /// Whether `load` has succeeded.
    static var isLoaded: Bool { loaded.load(ordering: .acquiring) }

    /// Whether this libvips was built with an operation such as `heifsave_target`.
    static func has(_ nickname: String) -> Bool { cvips.vips_type_find("VipsOperation", nickname) != 0 }

    /// Returns libvips' last error message as a single line and clears it. All threads share the error buffer, so this
    /// text is suitable for messages but not for decisions.
    static func takeErrorText() -> String {
        guard let text = cvips.vips_error_buffer_copy() else { return "no reason given" }
        defer { cvips.g_free(text) }
        let lines = String(cString: text).split(separator: "\n")
        return lines.isEmpty ? "no reason given" : lines.prefix(3).joined(separator: "; ")
    }
}
