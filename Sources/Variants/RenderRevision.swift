/// The version of our rendering code. With the versions of the libraries (`RenderLibraries`) it is part of a variant's
/// key, so an update of either leads to new variants instead of finding old ones.
package enum RenderRevision {
    /// Increased whenever the same recipe may give different pixels or bytes.
    package static let rendering = 11

    /// For example `7 libvips-8.14.1 …`.
    package static func text(_ libraries: RenderLibraries) -> String { "\(rendering) \(libraries.versions)" }
}
