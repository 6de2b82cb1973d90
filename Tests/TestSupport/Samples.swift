/// The files in `samples/`.
public enum Samples {
    /// The path of `samples`.
    public static let folder = FuzzPlan.root + "/samples"

    /// Returns the path of a file in `samples/originals`.
    public static func original(_ name: String) -> String { folder + "/originals/" + name }

    /// Returns the path of a file in `samples/broken`.
    public static func broken(_ name: String) -> String { folder + "/broken/" + name }

    /// The names of the files in `samples/originals`.
    public static var originals: [String] { ScratchFolder.names(in: folder + "/originals") }

    /// Returns the bytes of a file in `samples`. The file must exist.
    public static func bytes(_ name: String) -> [UInt8] {
        guard let bytes = ScratchFolder.bytes(at: folder + "/" + name) else {
            preconditionFailure("samples/\(name) is missing")
        }
        return bytes
    }
}
