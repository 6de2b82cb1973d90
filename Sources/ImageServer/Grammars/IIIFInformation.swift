import PipelineSupport
import Variants

/// A version of the IIIF Image API.
enum IIIFVersion: String, Sendable {
    case two = "2"
    case three = "3"

    var context: String { "http://iiif.io/api/image/\(rawValue)/context.json" }
    var profile: String { "http://iiif.io/api/image/\(rawValue)/level2.json" }
}

/// `info.json`, which describes an image to a viewer.
extension IIIFSettings {
    /// The members of `info.json` that the server writes.
    static let ownMembers = [
        "@context", "@id", "id", "type", "protocol", "profile", "width", "height", "maxWidth", "maxHeight", "maxArea",
        "sizes", "tiles", "preferredFormats", "extraFormats", "extraQualities", "extraFeatures",
    ]
    private static let qualities = ["color", "gray", "bitonal"]
    private static let features = ["canonicalLinkHeader", "profileLinkHeader", "mirroring", "rotationArbitrary"]

    /// Returns the text of `info.json`.
    ///
    /// - Parameter service: The URL of the image without parameters.
    func information(
        on header: ImageHeader, _ version: IIIFVersion, _ service: String, _ limits: IIIFLimits
    ) -> String {
        var json = JSONText()
        json.add("@context", version.context)
        json.add(version == .two ? "@id" : "id", service)
        json.add("protocol", "http://iiif.io/api/image")
        json.add("width", header.width)
        json.add("height", header.height)
        addLevels(of: header, limits, &json)
        let names = formats.map(\.rawValue)
        switch version {
        case .two:
            var profile = JSONText()
            // The other formats are unknown to version 2.
            profile.add("formats", texts: ["gif", "tif", "webp"].filter(names.contains))
            profile.add("qualities", texts: Self.qualities)
            profile.add("supports", texts: Self.features + ["sizeAboveFull", "regionSquare"])
            addMaxima(of: header, limits, &profile)
            json.add("profile", raw: "[\(JSONText.quoted(version.profile)),\(profile.closed)]")
        case .three:
            json.add("type", "ImageService3")
            json.add("profile", "level2")
            addMaxima(of: header, limits, &json)
            json.add("preferredFormats", texts: ["webp", "jpg"].filter(names.contains))
            json.add("extraFormats", texts: names.filter { !["jpg", "png"].contains($0) })
            json.add("extraQualities", texts: Self.qualities)
            json.add("extraFeatures", texts: Self.features + ["sizeUpscaling"])
        }
        for member in extras { json.add(member.name, raw: member.value.json) }
        return json.closed + "\n"
    }

    private func addMaxima(of header: ImageHeader, _ limits: IIIFLimits, _ json: inout JSONText) {
        let isLimited = maxWidth != nil || max(header.width, header.height) > limits.width
        json.add("maxWidth", isLimited ? limits.width : nil)
        json.add("maxHeight", maxHeight == nil ? nil : limits.height)
        json.add("maxArea", maxArea)
    }

    /// Adds the sizes and tiles that a viewer requests. The whole image fits into one tile at the largest factor.
    private func addLevels(of header: ImageHeader, _ limits: IIIFLimits, _ json: inout JSONText) {
        let (width, height) = (header.width, header.height)
        var edge = min(tile, limits.width, limits.height)
        while edge * edge > limits.area { edge /= 2 }
        var factors = [1]
        while let last = factors.last, edge * last < max(width, height) { factors.append(last * 2) }
        let sizes = factors.reversed().map { (width: (width + $0 - 1) / $0, height: (height + $0 - 1) / $0) }
            .filter { limits.allow($0.width, $0.height) }
        json.add(
            "sizes",
            raw: "[" + sizes.map { "{\"width\":\($0.width),\"height\":\($0.height)}" }.joined(separator: ",") + "]")
        let list = factors.map(String.init).joined(separator: ",")
        json.add("tiles", raw: "[{\"width\":\(edge),\"height\":\(edge),\"scaleFactors\":[\(list)]}]")
    }
}
