import CVips

/// libvips in this process: loaded and started on the first render, never before.
package enum VipsLibrary {
    /// Names the file to load in this process, in place of what the loader finds. No effect once libvips is loaded.
    package static func choose(_ path: String) { cvips_choose(path) }

    /// Loads libvips if that has not happened yet. Throws `libraryUnavailable`, naming the package to install.
    static func load() throws(RenderError) {
        if let failure = cvips_load() { throw RenderError(.libraryUnavailable, String(cString: failure)) }
    }

    /// Whether this libvips was built with an operation (`heifsave_target`, …).
    static func has(_ nickname: String) -> Bool { cvips.vips_type_find("VipsOperation", nickname) != 0 }

    /// What libvips reported last, in one line. All threads share its buffer, so this is text to show, never to test.
    static func takeErrorText() -> String {
        guard let text = cvips.vips_error_buffer_copy() else { return "no reason given" }
        defer { cvips.g_free(text) }
        let lines = String(cString: text).split(separator: "\n")
        return lines.isEmpty ? "no reason given" : lines.prefix(3).joined(separator: "; ")
    }
}
