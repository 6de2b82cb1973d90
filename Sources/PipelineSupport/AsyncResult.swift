extension Result {
    /// What `body` returns or throws.
    package init(of body: () async throws(Failure) -> Success) async {
        do throws(Failure) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}
