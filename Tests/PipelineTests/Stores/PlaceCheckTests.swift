import Glibc
import Testing

@testable import Pipeline

@Suite struct PlaceCheckTests {
    let folder = CacheFolder()

    init() { mkdir(folder.path, 0o700) }

    private func inode(_ file: CInt) -> UInt64 {
        var info = stat()
        return fstat(file, &info) == 0 ? UInt64(info.st_ino) : 0
    }

    @Test(arguments: ["deleted", "replaced", "moved", "its folder moved"])
    func `a file that is not in its place any more is found missing`(change: String) throws {
        mkdir("\(folder.path)/inner", 0o700)
        let path = "\(folder.path)/inner/file"
        folder.overwrite("inner/file", at: 0, with: [1])
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var check = PlaceCheck()
        #expect(!check.isRecent)
        let isThere = check.finds(file, inode: inode(file), at: path)
        #expect(isThere)
        switch change {
        case "deleted": unlink(path)
        case "replaced":
            folder.overwrite("inner/other", at: 0, with: [2])
            rename("\(folder.path)/inner/other", path)
        case "moved": rename(path, "\(folder.path)/elsewhere")
        default: rename("\(folder.path)/inner", "\(folder.path)/outer")
        }
        // The descriptor tells of the first two at once; of the others the path does.
        if change != "deleted", change != "replaced" { check.expire() }
        let isThereStill = check.finds(file, inode: inode(file), at: path)
        let isFound = check.finds(inode(file), at: path)
        #expect(!isThereStill && !isFound)
    }

    @Test func `nothing is found without a descriptor, and in the place of another file`() {
        folder.overwrite("file", at: 0, with: [1])
        let path = "\(folder.path)/file"
        let file = open(path, O_RDONLY | O_CLOEXEC)
        defer { close(file) }
        var check = PlaceCheck()
        let withoutDescriptor = check.finds(-1, inode: inode(file), at: path)
        let another = check.finds(inode(file) &+ 1, at: path)
        #expect(!withoutDescriptor && !another && !check.isRecent)
        let itself = check.finds(inode(file), at: path)
        #expect(itself)
    }
}
