@testable import PipelineCaching
import Glibc
import TestSupport
import Testing

@testable import Pipeline

@Suite struct FolderContentTests {
    private let folder = CacheFolder()
    private var content: FolderContent {
        get throws { try FolderContent(folder.path) }
    }

    @Test func `a folder is missing, empty, or somebody's`() throws {
        #expect(try content == .missing)
        #expect(try FolderContent("\(folder.path)/below") == .missing)
        mkdir(folder.path, 0o700)
        #expect(try content == .empty)
        mkdir("\(folder.path)/lost+found", 0o700)
        #expect(try content == .empty)
        folder.overwrite(".profile", at: 0, with: [1])
        #expect(try content == .foreign(".profile"))
        for path in ["/.profile", "/.profile/below"] { #expect(try FolderContent(folder.path + path) == .notAFolder) }
        symlink("nowhere", "\(folder.path)/link")
        #expect(try FolderContent("\(folder.path)/link") == .notAFolder)
    }

    @Test func `a cache stays one whatever else is put there, and whatever one of its files is lost`() throws {
        try DiskStore(folder: folder.path).close()
        #expect(try content == .cache)
        for lost in ["cache.sqlite", "generation", "rebuild.lock"] {
            let other = CacheFolder()
            try DiskStore(folder: other.path).close()
            unlink("\(other.path)/\(lost)")
            #expect(try FolderContent(other.path) == .cache)
            other.overwrite("notes.txt", at: 0, with: [1])
            #expect(try FolderContent(other.path) == .cache, "without \(lost)")
            try DiskStore(folder: other.path).close()
            #expect(other.size("notes.txt") == 1)
        }
        // An index bears our application id, and needs nothing beside it.
        let alone = CacheFolder()
        try DiskStore(folder: alone.path).close()
        for lost in ["generation", "rebuild.lock"] { unlink("\(alone.path)/\(lost)") }
        #expect(try FolderContent(alone.path) == .cache)
        // Behind a link it is the same.
        let link = CacheFolder()
        symlink(folder.path, link.path)
        #expect(try FolderContent(link.path) == .cache)
        unlink(link.path)
    }

    @Test func `an interrupted creation is gone on with, and files that only look like a cache's are none`() throws {
        mkdir(folder.path, 0o700)
        folder.overwrite("cache.sqlite", at: 0, with: [])
        #expect(try content == .unfinished)
        folder.overwrite("rebuild.lock", at: 0, with: [])
        #expect(try content == .unfinished)
        folder.overwrite("thesis.doc", at: 0, with: [1])
        #expect(try content == .foreign("thesis.doc"))
        unlink("\(folder.path)/thesis.doc")
        try DiskStore(folder: folder.path).close()
        #expect(try content == .cache)

        // `uses` is a file of ours, not a folder.
        let home = ScratchFolder()
        mkdir("\(home.path)/uses", 0o700)
        #expect(try FolderContent(home.path) == .foreign("uses"))
    }

    @Test(arguments: [
        ["cache.sqlite"], ["reserve"], ["uses"], ["generation"], ["holders", "bodies.pack"], ["flights.lock"],
        ["rebuild.lock"], ["ghosts.txt"], ["cache.sqlite.bak"], ["bodies/photos/x.txt"], ["temporary/thesis.doc"],
    ]) func `files of somebody else's under our names make no cache, and stay`(names: [String]) throws {
        for folder in ["", "/bodies", "/bodies/photos", "/temporary"] where names[0].hasPrefix(folder.dropFirst()) {
            if folder.isEmpty || names[0].contains("/") { mkdir(self.folder.path + folder, 0o755) }
        }
        for name in names { folder.overwrite(name, at: 0, with: Array("mine".utf8)) }
        chmod(folder.path, 0o755)
        guard case .foreign = try content else {
            Issue.record("\(names): \(try content)")
            return
        }
        let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
        #expect(error?.code == .unavailable)
        for name in names { #expect(folder.contents(name) == Array("mine".utf8)) }
        var info = stat()
        #expect(stat(folder.path, &info) == 0 && info.st_mode & 0o777 == 0o755)
    }

    @Test func `the database of another program is refused and left as it is`() throws {
        mkdir(folder.path, 0o700)
        let path = "\(folder.path)/cache.sqlite"
        let theirs = try SQLiteConnection(path: path, busyMilliseconds: 0)
        try theirs.execute("PRAGMA journal_mode=WAL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)")
        theirs.close()
        let before = folder.size("cache.sqlite")
        let error = #expect(throws: StoreError.self) { _ = try DiskStore(folder: folder.path) }
        #expect(error?.code == .unavailable && error?.message.contains("such as `cache.sqlite`") == true)
        #expect(folder.size("cache.sqlite") == before)
        for name in ["bodies", "temporary", "generation", "reserve", "rebuild.lock"] {
            #expect(folder.size(name) == nil, "\(name)")
        }
    }
}
