import Testing

@testable import Variants

extension WorkerPoolTests {
    @Test(arguments: ["jpeg", "webp", "avif", "jxl"])
    func `a sandboxed worker decodes and measures its files`(output: String) async throws {
        let pool = WorkerPool(Self.configuration())
        let job = try RenderSamples.job("dusk-2mp.jpg", "thumbnail:120,\(output):score=60")
        let file = try await pool.render(job).bytes
        await pool.shutdown()
        #expect(try await RenderFixture.renderer.render(job).bytes == file)
    }
}
