import Testing

@testable import Variants

// Within the suite of the workers, which counts and kills the workers of the whole process.
extension WorkerPoolTests {
    /// Hostile files through render workers: a picture or an error that says what is over which limit, and no worker lost.
    @Suite(.serialized) struct HostileFileTests {
        static func pool(_ environment: [String] = []) -> WorkerPool {
            var configuration = WorkerConfiguration()
            configuration.maxConcurrentRenders = 1
            configuration.quarantine = .zero
            configuration.environment = environment
            return WorkerPool(configuration)
        }

        /// A file's result, from its first byte on, in the pipeline's way.
        static func outcome(
            _ bytes: [UInt8], _ recipe: String, _ pool: WorkerPool, seconds: Double = 10
        ) async throws -> Result<RenderedVariant, RenderError> {
            let recipe = try Recipe(recipe)
            do throws(RenderError) {
                let header = try ImageHeader.probe(bytes)
                var job = RenderJob(original: bytes, header: header, recipe: recipe, quality: .fast)
                job.limits.formats = Set(ImageFormat.decodable)
                job.limits.timeout = .seconds(seconds)
                return .success(try await pool.render(job))
            } catch {
                return .failure(error)
            }
        }

        /// The possible errors about the file.
        static let ordinary: [RenderError.Code] = [
            .notAnImage, .unsupportedFormat, .overLimit, .undecodable, .notApplicable, .overBudget, .encodingFailed,
        ]

        private func check(_ file: HostileFiles.File, _ pool: WorkerPool) async throws {
            let outcome = try await Self.outcome(try file.bytes(), file.recipe, pool, seconds: file.seconds)
            switch (file.outcome, outcome) {
            case (.picture, .success), (.either, .success): break
            case (.either, .failure(let error)):
                #expect(Self.ordinary.contains(error.code), "\(file): \(error.code), \(error)")
            case (.refused(let codes), .failure(let error)):
                #expect(codes.contains(error.code), "\(file): \(error.code), \(error)")
            case (.over(let limit, let value), .failure(let error)):
                #expect(error.code == .overLimit, "\(file): \(error.code), \(error)")
                #expect(error.message.contains("limits.\(limit) = \(value); "), "\(file): \(error)")
            case (.tooMany(let parts), .failure(let error)):
                #expect(error.code == .overLimit && error.message.contains(parts), "\(file): \(error.code), \(error)")
            case (_, .success): Issue.record("\(file): a picture")
            case (.picture, .failure(let error)): Issue.record("\(file): \(error.code), \(error)")
            }
            if case .success(let variant) = outcome {
                #expect(!variant.bytes.contains("<script>".utf8), "\(file): what is no picture went into the output")
            }
        }

        @Test(arguments: [HostileFiles.bombs, HostileFiles.metadata, HostileFiles.parts, HostileFiles.polyglots])
        func `hostile files are pictures or precise errors, and the next picture works`(
            files: [HostileFiles.File]
        ) async throws {
            let pool = Self.pool()
            for file in files { try await check(file, pool) }
            let next = try await Self.outcome(try HostileFiles.jpeg(), "thumbnail:20x20,png", pool)
            #expect((try? next.get()) != nil)
            #expect(pool.statistics.crashed == 0 && pool.statistics.killed == 0, "\(pool.statistics)")
            await pool.shutdown()
        }

        @Test func `a file cut anywhere is a picture or a precise error`() async throws {
            let pool = Self.pool()
            for (name, bytes) in try SmallPictures.all() {
                for sixteenth in 0..<16 {
                    let cut = Array(bytes[..<(bytes.count * sixteenth / 16)])
                    let outcome = try await Self.outcome(cut, "thumbnail:20x20,png", pool)
                    if case .failure(let error) = outcome {
                        #expect(
                            Self.ordinary.contains(error.code), "\(name) at \(sixteenth)/16: \(error.code), \(error)")
                        #expect(!error.message.isEmpty)
                    }
                }
                let whole = try await Self.outcome(bytes, "thumbnail:20x20,png", pool)
                #expect((try? whole.get()) != nil, "\(name): \(whole)")
            }
            #expect(pool.statistics.crashed == 0 && pool.statistics.killed == 0, "\(pool.statistics)")
            await pool.shutdown()
        }
    }
}
