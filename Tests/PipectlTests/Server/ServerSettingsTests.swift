import HTTPCaching
import ImageServer
import ImageServerNIO
import Testing
import Variants

@testable import pipectl

@Suite struct ServerSettingsTests {
    private func read(_ assignments: [String]) throws -> ServerSettings {
        try ServerSettings(Settings(assignments: assignments), caching: CachingConfiguration(), isVerbose: false)
    }

    @Test func `the defaults are those of the table`() throws {
        let settings = try read([])
        #expect(settings.listener.listen.description == "127.0.0.1:8080" && settings.site.formats == [.jxl, .webp])
        #expect(
            !settings.site.signature.allowUnsigned && settings.site.recipes == nil && settings.site.forwarded.isEmpty)
        #expect(
            settings.listener.connections == 1024 && settings.listener.headerBytes == 16_384
                && settings.listener.idleSeconds == 60)
        #expect(!settings.logsRequests)
    }

    @Test(arguments: ["listen=8080", "auto=webp,bmp", "recipes.allow=thumbnial:3", #"presets={"a":"@b"}"#])
    func `what does not fit ends the program before it listens`(_ assignment: String) {
        let failure = #expect(throws: CommandFailure.self) { _ = try read([assignment]) }
        #expect(failure?.exit == .usage)
    }

    @Test func `the log is for those who ask`() throws {
        #expect(try read(["log.level=info"]).logsRequests)
        #expect(try !read(["log.level=warning"]).logsRequests)
    }
}
