extension Result {
    /// Creates a result from the value that `body` returns or the error that it throws.
    @inlinable package init(of body: () async throws(Failure) -> Success) async {
        do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
