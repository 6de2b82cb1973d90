/// The version of the rendering code. Together with the version of libvips, it is part of each variant's key, so an
/// update of either leads to new variants instead of stale hits.
package enum RenderRevision {
    /// The revision number. Increase it whenever the same recipe may produce different pixels or bytes.
    package static let rendering = 13

    /// Returns the text in variant keys, such as `12 libvips-8.14.1`.
    package static func text(_ libraries: RenderLibraries) -> String { "\(rendering) libvips-\(libraries.libvips)" }
}
