import Glibc

/// Returns the path of a program in this package, which `swift build --build-tests` puts in the same folder as the
/// running program.
///
/// - Throws: `ProgramError` if the program has not been built. `swift build --build-tests` puts beside the running one.
///
/// - Throws: `ProgramError` if it has not been built.
public func builtProgram(_ name: String) throws(ProgramError) -> String {
    guard let own = realpath("/proc/self/exe", nil) else { throw ProgramError("/proc is not there: \(errno)") }
    defer { free(own) }
    let folder = String(cString: own).split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let path = (folder + [name[...]]).joined(separator: "/")
    guard access(path, X_OK) == 0 else {
        throw ProgramError("\(path) is not there; `swift build --build-tests` makes it")
    }
    return path
}
