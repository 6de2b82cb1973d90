import HTTPCaching
import Pipeline
import PipelineSupport

extension Site {
    /// Responds to `/info` with a description of an original as JSON. The response has the freshness of the original
    /// and an entity tag for the JSON.
    func info(_ routed: RoutedRequest, _ request: ServerRequest) async throws(Problem) -> ServerResponse {
        let asked = imageRequest(try source(of: routed), for: request)
        let information: SourceInformation
        do throws(PipelineError) {
            information = try await pipeline.information(for: asked)
            // Clients would cache a response without colors, so colors are omitted only if the error is permanent.
            if let error = information.colorError, !Self.lasting.contains(error.code) { throw error }
        } catch {
            throw Problem(error)
        }
        var answer = information.response
        let json = information.json(source: routed.source, freshness: false)
        answer.bytes = Array((routed.translate(information, json) + "\n").utf8)
        answer.mediaType = "application/json"
        answer.digest = sha256Hex(answer.bytes)
        return description(answer, routed, request, isNegotiated: false, cacheControl: nil, isAtHand: asked.isAtHand)
    }

    /// Responds with a description of an original in the form of the request's grammar. It may depend on `Accept`.
    func information(_ routed: RoutedRequest, _ request: ServerRequest) async throws(Problem) -> ServerResponse {
        let asked = imageRequest(try source(named: routed.source), for: request)
        var answer: ImageResponse
        do throws(PipelineError) { answer = try await pipeline.description(of: asked) } catch { throw Problem(error) }
        guard let header = answer.record.header else { throw Problem(.notAnImage) }
        guard let (text, mediaType) = routed.describe(header) else { throw Problem(.notFound) }
        answer.bytes = Array(text.utf8)
        answer.mediaType = mediaType
        // Forms that differ only in their media type need different entity tags.
        answer.digest = sha256Hex(mediaType + text)
        return description(
            answer, routed, request, isNegotiated: true, cacheControl: settings.freshness?.directives,
            isAtHand: asked.isAtHand)
    }

    private func description(
        _ image: ImageResponse, _ routed: RoutedRequest, _ request: ServerRequest, isNegotiated: Bool,
        cacheControl: String?, isAtHand: Bool
    ) -> ServerResponse {
        let varying = VariantAnswer.varying(
            original: image.record.response.fields, forwarded: rules.forwarded, isNegotiated: isNegotiated)
        var answer = VariantAnswer.response(
            image, varying: varying, naming: settings.tags.fields(of: image.record), caching: caching,
            cacheControl: cacheControl, isAtHand: isAtHand, expiry: routed.grant.expiry, now: now())
        routed.present(&answer, PresentedPicture(image, now: now()))
        return ConditionalAnswer.response(
            answer, to: request.fields, isHead: request.isHead, isOrigin: true, now: now())
    }

    /// Errors that would recur if the colors of the same picture were computed again.
    private static let lasting: Set<PipelineError.Code> = [
        .undecodable, .overLimit, .unsupportedFormat, .renderFailed, .renderCrashed,
    ]
}
