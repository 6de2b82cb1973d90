import Pipeline

/// A complete answer cut down to what the request's conditions and ranges ask for.
enum ConditionalAnswer {
    static func response(_ answer: ServerResponse, to fields: [HeaderField], now: Double) -> ServerResponse {
        answer
    }
}
