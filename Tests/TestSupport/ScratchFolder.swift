import Glibc

/// A folder for one test. The folder is removed when this object is released.
public final class ScratchFolder: Sendable {
    /// The absolute path of the folder.
    public let path: String

    /// Creates the folder in `/tmp`.
    public init() {
        var template = Array("/tmp/pipeline-tests-XXXXXX".utf8CString)
        let isThere = mkdtemp(&template) != nil
        precondition(isThere, "no temporary folder")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    /// Returns the path of a file or folder in the folder.
    public func callAsFunction(_ name: String) -> String { path + "/" + name }

    /// Writes a file as UTF-8 and returns its path.
    @discardableResult
    public func write(_ text: String, to name: String) -> String { write(Array(text.utf8), to: name) }

    /// Writes a file, creates missing parent folders, and returns the path of the file.
    @discardableResult
    public func write(_ bytes: [UInt8], to name: String) -> String {
        let target = self(name)
        if let slash = target.lastIndex(of: "/") { Self.makeFolders(String(target[..<slash])) }
        let file = open(target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        precondition(file >= 0, "cannot write \(target)")
        _ = bytes.withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
        close(file)
        return target
    }

    private static func makeFolders(_ folder: String) {
        if mkdir(folder, 0o755) == 0 || errno == EEXIST { return }
        if let slash = folder.lastIndex(of: "/") { makeFolders(String(folder[..<slash])) }
        mkdir(folder, 0o755)
    }

    /// Returns the bytes of a file, or nil if it does not exist.
    public func bytes(_ name: String) -> [UInt8]? { Self.bytes(at: self(name)) }

    /// Returns the bytes of the file at a path, or nil if it does not exist.
    public static func bytes(at path: String) -> [UInt8]? {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var all: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while case let count = read(file, &buffer, buffer.count), count > 0 { all += buffer[..<count] }
        return all
    }

    /// Returns the content of a file as a string, or nil if it does not exist.
    public func text(_ name: String) -> String? { bytes(name).map { String(decoding: $0, as: UTF8.self) } }

    /// Returns the names in a subfolder, sorted by their bytes.
    public func names(_ folder: String = "") -> [String] { Self.names(in: self(folder)) }

    /// Returns the names in the folder at a path, sorted by their bytes. Empty if the folder does not exist.
    public static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        forEachName(in: stream) { names.append(String(cString: $0)) }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
    }

    /// Deletes a file, or a folder with its contents. Links are deleted but never followed, because tests create links
    /// that lead out of the folder.
    public static func remove(_ path: String) { remove(path, in: AT_FDCWD) }

    private static func remove(_ name: UnsafePointer<CChar>, in folder: Int32) {
        if unlinkat(folder, name, 0) == 0 { return }
        let place = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
        guard place >= 0 else { return }
        fchmod(place, 0o755)
        if let stream = fdopendir(place) {
            forEachName(in: stream) { remove($0, in: place) }
            closedir(stream)
        }
        unlinkat(folder, name, AT_REMOVEDIR)
    }

    private static func forEachName(in stream: OpaquePointer, _ body: (UnsafePointer<CChar>) -> Void) {
        while let item = readdir(stream) {
            withUnsafePointer(to: &item.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { name in
                    if strcmp(name, ".") != 0, strcmp(name, "..") != 0 { body(name) }
                }
            }
        }
    }
}
