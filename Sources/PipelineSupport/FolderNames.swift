import Glibc

/// Calls `body` with each name in a folder except `.` and `..`, until it returns false. Blocks on the file system.
///
/// - Returns: false, with `errno` set, if the folder cannot be read.
@discardableResult
package func forEachName(in folder: String, _ body: (UnsafeBufferPointer<UInt8>) -> Bool) -> Bool {
    guard let stream = opendir(folder) else { return false }
    defer { closedir(stream) }
    var goesOn = true
    while goesOn, let entry = readdir(stream) {
        goesOn = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
            let name = bytes.bindMemory(to: UInt8.self)
            let length = name.firstIndex(of: 0) ?? name.count
            let isSelfOrParent = length <= 2 && name.prefix(length).allSatisfy { $0 == UInt8(ascii: ".") }
            return isSelfOrParent || body(UnsafeBufferPointer(rebasing: name[..<length]))
        }
    }
    return true
}
