import HTTPCaching
import Pipeline
import PipelineSupport

extension Site {
    /// Responds to `/info` with a description of an original as JSON. The response has the freshness of the original
    /// and an entity tag for the JSON.
    func info(_ routed: RoutedRequest, _ request: ServerRequest) async throws(Problem) -> ServerResponse {
        let asked = imageRequest(try source(named: routed.source), for: request)
        let information: SourceInformation
        do throws(PipelineError) {
            information = try await pipeline.information(for: asked)
            // Clients would cache a response without colors, so colors are omitted only if the error is permanent.
            if let error = information.colorError, !Self.lasting.contains(error.code) { throw error }
        } catch {
            throw Problem(error)
        }
        var answer = information.response
        answer.bytes = Array((information.json(source: routed.source, freshness: false) + "\n").utf8)
        answer.mediaType = "application/json"
        answer.digest = sha256Hex(answer.bytes)
        let varying = VariantAnswer.varying(
            original: answer.record.response.fields, forwarded: rules.forwarded, isNegotiated: false)
        return ConditionalAnswer.response(
            VariantAnswer.response(
                answer, varying: varying, naming: settings.tags.fields(of: answer.record), caching: caching,
                isAtHand: asked.isAtHand, expiry: routed.grant.expiry, now: now()),
            to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    /// Errors that would recur if the colors of the same picture were computed again.
    private static let lasting: Set<PipelineError.Code> = [
        .undecodable, .overLimit, .unsupportedFormat, .renderFailed, .renderCrashed,
    ]
}
