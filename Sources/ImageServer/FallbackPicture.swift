import HTTPCaching
public import Variants

/// The setting `server.fallback`: a picture in place of one that is not there or cannot be made.
public struct FallbackPicture: Sendable {
    private let bytes: [UInt8]
    private let mediaType: String

    /// - Throws: `RenderError` if the bytes are no picture.
    public init(_ bytes: [UInt8]) throws(RenderError) {
        mediaType = try ImageHeader.probe(bytes).format.mediaType
        self.bytes = bytes
    }

    /// The answer to a request for a variant that failed: its status, so that no client takes it for the variant, and
    /// never stored. nil for statuses other than 404 and 422, which say nothing about the picture.
    func response(to problem: Problem, variesByAccept: Bool, now: Double) -> ServerResponse? {
        guard problem.kind.status == 404 || problem.kind.status == 422 else { return nil }
        var fields = ServerResponse.ownFields(mediaType, now: now)
        fields.append(OriginalAnswer.sandbox)
        if variesByAccept { fields.append(HeaderField("Vary", "Accept")) }
        return ServerResponse(
            status: problem.kind.status, fields: fields, body: bytes, note: problem.note + "; fallback")
    }
}
