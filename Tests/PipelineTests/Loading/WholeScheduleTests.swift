import TestSupport
import Testing

@testable import Pipeline

@Suite(.timeLimit(.minutes(20))) struct WholeScheduleTests {
    @Test func `a hundred schedules over the whole leave one outcome each, and no load, thread or descriptor`()
        async throws
    {
        let folder = CacheFolder()
        let program = try HelperProgram([
            try builtProgram("load-worker"), Samples.original("night-tiny.jpg"), folder.path, "100",
        ])
        defer { program.stop() }
        #expect(await program.end() == 0, "\(program.text)")
    }
}
