import ImageServer
import ImageServerNIO
import Testing
import Variants

@testable import pipectl

@Suite struct ServerSettingsTests {
    private func read(_ assignments: [String]) throws -> (RunConfiguration, site: ServerConfiguration) {
        let settings = try Settings(assignments: assignments)
        let configuration = try settings.configuration(serves: true)
        return (configuration, try configuration.serverConfiguration(settings))
    }

    @Test func `the defaults are those of the table`() throws {
        let (configuration, site) = try read([])
        let listener = configuration.listener
        #expect(listener.listen.description == "127.0.0.1:8080" && site.formats == [.jxl, .webp])
        #expect(!site.signature.allowUnsigned && site.recipes == nil && site.forwarded.isEmpty)
        #expect(listener.connections == 1024 && listener.headerBytes == 16_384 && listener.idleSeconds == 60)
        #expect(!configuration.logLevel.includesRequests)
    }

    @Test(arguments: ["listen=8080", "auto=webp,bmp", "recipes.allow=thumbnial:3", #"presets={"a":"@b"}"#])
    func `what does not fit ends the program before it listens`(_ assignment: String) {
        let failure = #expect(throws: (any Error).self) { _ = try read([assignment]) }
        #expect(failure is SettingError || (failure as? CommandFailure)?.exit == .usage)
    }

    @Test func `the log is for those who ask`() throws {
        #expect(try read(["log.level=info"]).0.logLevel.includesRequests)
        #expect(try !read(["log.level=warning"]).0.logLevel.includesRequests)
    }
}
