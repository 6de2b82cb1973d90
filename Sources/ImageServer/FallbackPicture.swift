import HTTPCaching
import Pipeline
public import Variants

/// The setting `server.fallback`: a picture in place of one that is not there or cannot be made, in the size and shape that
/// the request asks for.
public struct FallbackPicture: Sendable {
    private let bytes: [UInt8]
    private let mediaType: String
    private let status: Int?

    /// - Parameters:
    ///   - bytes: of a picture in any format that is read.
    ///   - status: sent with it, 200 or from 400 on; nil, the default, for the problem's, so that no client takes it for the
    ///     variant.
    /// - Throws: `RenderError` if the bytes are no picture.
    public init(_ bytes: [UInt8], status: Int? = nil) throws(RenderError) {
        mediaType = try ImageHeader.probe(bytes).format.mediaType
        self.bytes = bytes
        self.status = status
    }

    /// Whether it stands for what failed so: 404 and 422 alone say something about the picture.
    static func stands(for problem: Problem) -> Bool { [404, 422].contains(problem.kind.status) }

    /// What to render in place of what was asked for.
    func request(like asked: ImageRequest) -> ImageRequest {
        var request = ImageRequest(.bytes(bytes, name: "server.fallback"), recipe: asked.recipe)
        request.negotiated = asked.negotiated
        return request
    }

    /// The answer to a request for a variant that failed; it is never stored.
    ///
    /// - Parameter image: what `request(like:)` led to; nil if that failed, too, and the picture is sent as it is.
    func response(to problem: Problem, _ image: ImageResponse?, variesByAccept: Bool, now: Double) -> ServerResponse {
        let bytes = image?.bytes ?? bytes
        var fields = ServerResponse.ownFields(image?.mediaType ?? mediaType, now: now)
        fields.append(OriginalAnswer.sandbox)
        if variesByAccept { fields.append(HeaderField("Vary", "Accept")) }
        return ServerResponse(
            status: status ?? problem.kind.status, fields: fields, body: bytes, note: problem.note + "; fallback")
    }
}
