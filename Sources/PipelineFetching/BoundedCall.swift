import PipelineSupport

/// Runs a program's own code for a fetch, for at most `seconds`, and for no longer than the caller waits. Does not wait
/// for code that ignores its cancellation.
///
/// - Parameters:
///   - who: the name of the code in messages.
///   - limit: the setting that `seconds` comes from.
///   - code: the error code if `call` throws.
///   - atEnd: a closure that is called when the call has ended, or after `seconds`.
func bounded<Value: Sendable>(
    _ url: SourceURL, _ who: String, seconds: Double, limit: String, code: FetchError.Code,
    atEnd: @escaping @Sendable () -> Void = {}, _ call: @escaping @Sendable () async throws -> Value
) async throws(FetchError) -> Value {
    let (answers, answer) = AsyncStream<Result<Value, any Error>?>.makeStream()
    let clock = Task {
        try? await Task.sleep(for: .seconds(seconds))
        answer.yield(nil)
        atEnd()
    }
    let call = Task {
        answer.yield(await Result { try await call() })
        clock.cancel()
    }
    defer { call.cancel() }
    for await result in answers {
        switch result {
        case .success(let value)?: return value
        case nil: throw FetchError(.timeout, url, "\(who) took longer than \(seconds) s (\(limit))")
        case .failure(let error)?:
            if Task.isCancelled { break }
            var failure = FetchError(code, url, "\(who) failed: \(error)")
            failure.cause = error
            throw failure
        }
    }
    throw FetchError(.cancelled, url, "cancelled")
}
