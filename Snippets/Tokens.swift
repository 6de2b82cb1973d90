// An expiring token in each request to an origin.

import Pipeline

// snippet.tokens
/// Gets a token, and a new one after it has expired. This example has no server that issues tokens.
actor Tokens {
    private var token: (text: String, expires: ContinuousClock.Instant)?

    func current() async throws -> String {
        if let token, token.expires > .now { return token.text }
        let new = (text: "secret", expires: ContinuousClock.now + .seconds(300))
        token = new
        return new.text
    }
}

let tokens = Tokens()
var configuration = PipelineConfiguration()
configuration.willSend = { request in
    guard request.url.host == "pictures.example" else { return }
    request.fields.append(HeaderField("Authorization", "Bearer \(try await tokens.current())"))
}
// snippet.end
let pipeline = try ImagePipeline(configuration)
await pipeline.shutdown()
