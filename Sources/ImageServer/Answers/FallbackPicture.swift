import HTTPCaching
import Pipeline
package import PipelineSupport
import Variants

/// The `server.fallback` setting: a picture that replaces a missing picture or a picture that cannot be rendered. The
/// fallback picture is rendered with the recipe of the request.
package struct FallbackPicture: Sendable {
    private let bytes: [UInt8]
    private let mediaType: String
    private let status: Int?
    /// Whether the picture is sent for every problem of a permitted request.
    var coversAll = false
    /// How long clients may use the picture, in seconds. If 0, the default, they do not store it.
    var maxAge = 0

    /// Checks the picture and the status.
    ///
    /// - Parameters:
    ///   - bytes: A picture in any format that can be decoded.
    ///   - status: The status of the response, 200 or 400…599. If nil, the status of the problem is sent.
    /// - Throws: if the bytes are not a picture or the status is invalid.
    package init(_ bytes: [UInt8], status: Int?) throws(InvalidSetting) {
        if let fault = status.flatMap(Self.fault(ofStatus:)) { throw InvalidSetting(fault) }
        do { mediaType = try ImageHeader.probe(bytes).format.mediaType } catch { throw InvalidSetting(error.message) }
        self.bytes = bytes
        self.status = status
    }

    /// Reads the picture from a file of at most 10 MB.
    init(atPath path: String, status: Int?) throws(InvalidSetting) {
        let bytes: [UInt8]
        do throws(LocalFile.Failure) { bytes = try LocalFile.open(path, byteLimit: 10_000_000).bytes() } catch {
            throw InvalidSetting(error.message)
        }
        try self.init(bytes, status: status)
    }

    /// Returns the reason why a status is invalid, or nil if it is valid.
    package static func fault(ofStatus status: Int) -> String? {
        status == 200 || (400...599).contains(status) ? nil : "the status must be 200, or between 400 and 599"
    }

    /// Whether the fallback picture is sent for this problem. By default, this is true for 404 and 422, which concern
    /// the picture itself.
    func applies(to problem: Problem) -> Bool { coversAll || [404, 422].contains(problem.kind.status) }

    /// Returns the request that renders the fallback picture in place of `asked`.
    func request(like asked: ImageRequest) -> ImageRequest {
        var request = ImageRequest(.bytes(bytes, name: "server.fallback"), recipe: asked.recipe)
        (request.choice, request.negotiated) = (asked.choice, asked.negotiated)
        return request
    }

    /// Returns the response to a failed request for a variant. The server never stores it.
    ///
    /// - Parameter image: The result of `request(like:)`. If nil, rendering also failed, and the picture is sent
    ///   unchanged.
    func response(to problem: Problem, _ image: ImageResponse?, variesByAccept: Bool, now: Double) -> ServerResponse {
        let bytes = image?.bytes ?? bytes
        var fields = ServerResponse.ownFields(image?.mediaType ?? mediaType, now: now)
        if maxAge > 0 {
            fields =
                fields.filter { $0.name != "Cache-Control" } + [
                    HeaderField("Cache-Control", "max-age=\(maxAge), public")
                ]
        }
        fields.append(OriginalAnswer.sandbox)
        if variesByAccept { fields.append(HeaderField("Vary", "Accept")) }
        return ServerResponse(
            status: status ?? problem.kind.status, fields: fields, body: bytes, note: problem.note + "; fallback")
    }
}
