import Foundation

@testable import Variants

/// Short ways to render the files of `samples/originals` and to ask the libvips commands for their answer.
enum RenderSamples {
    static func path(_ name: String) -> String { ProbeSampleTests.samples + "originals/" + name }

    static func job(
        _ name: String, _ recipe: String, quality: RenderQuality = .fast
    ) throws -> RenderJob {
        try job(ProbeSampleTests.read("originals/" + name), recipe, quality: quality)
    }

    static func job(_ bytes: [UInt8], _ recipe: String, quality: RenderQuality = .fast) throws -> RenderJob {
        let header = try ImageHeader.probe(bytes)
        let recipe = try Recipe(recipe)
        return RenderJob(original: bytes, header: header, recipe: recipe, quality: quality, limits: .patient)
    }

    static func pixels(_ name: String, _ recipe: String, quality: RenderQuality = .fast) async throws -> PixelBuffer {
        try await RenderFixture.renderer.pixels(job(name, recipe, quality: quality))
    }

    /// Pixels of encoded bytes, unchanged.
    static func decoded(_ bytes: [UInt8]) async throws -> PixelBuffer {
        try await RenderFixture.renderer.pixels(job(bytes, "orient:off"))
    }

    static let hasCommands = ["vips", "vipsthumbnail"].allSatisfy {
        FileManager.default.isExecutableFile(atPath: "/usr/bin/" + $0)
    }

    /// The PNG that a command of libvips writes; `OUT` among the arguments is replaced by its path.
    static func output(of command: String, _ arguments: String...) async throws -> PixelBuffer {
        let out = NSTemporaryDirectory() + "render-test-\(UInt64.random(in: 0 ... .max)).png"
        defer { try? FileManager.default.removeItem(atPath: out) }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/" + command)
        process.arguments = arguments.map { $0.replacing("OUT", with: out) }
        try process.run()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else { throw CommandFailure(command: command) }
        return try await decoded([UInt8](Data(contentsOf: URL(fileURLWithPath: out))))
    }

    struct CommandFailure: Error { let command: String }
}
