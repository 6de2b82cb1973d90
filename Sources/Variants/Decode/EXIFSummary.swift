/// Contains frequently used EXIF data of a picture: camera, exposure, date and position (CIPA DC-008, Exif 3.0 §4.6).
/// Read it from `ImageDetails.exif`. Damaged or missing entries are nil.
public struct EXIFSummary: Sendable, Hashable {
    /// The camera's maker and model.
    public var camera: String?
    /// The model of the lens.
    public var lens: String?
    /// The exposure time in seconds.
    public var exposureTime: Double?
    /// The f-number.
    public var aperture: Double?
    /// The ISO speed.
    public var sensitivity: Int?
    /// The focal length in millimeters.
    public var focalLength: Double?
    /// The date when the picture was taken, in ISO 8601 form: `2024-05-01T12:30:00`, with a time zone offset if the
    /// camera recorded it.
    public var date: String?
    /// The latitude in degrees north, −90…90, usually in WGS 84. The position is personal data, so show it only on
    /// request.
    public var latitude: Double?
    /// The longitude in degrees east, −180…180, or nil if `latitude` is nil.
    public var longitude: Double?

    /// Reads the summary. Returns nil if none of the entries can be read.
    ///
    /// - Parameter block: the EXIF block, starting at its TIFF header.
    init?(_ block: ByteReader) {
        guard let file = TIFFHeader(block) else { return nil }
        let (maker, model) = (file.text(0x010F), file.text(0x0110))
        if let maker, let model {
            camera = model.hasPrefix(maker.prefix { $0 != " " }) ? model : maker + " " + model
        } else {
            camera = model ?? maker
        }
        var written = file.text(0x0132)
        var offset: String?
        if let photo = file.value(0x8769) {
            offset = file.text(0x9010, in: photo)
            lens = file.text(0xA434, in: photo)
            exposureTime = file.rationals(0x829A, in: photo).first
            aperture = file.rationals(0x829D, in: photo).first
            sensitivity = file.value(0x8827, in: photo)
            focalLength = file.rationals(0x920A, in: photo).first
            if let original = file.text(0x9003, in: photo) {
                written = original
                offset = file.text(0x9011, in: photo)
            }
        }
        date = written.flatMap { Self.date($0, offset) }
        if let directory = file.value(0x8825) { (latitude, longitude) = Self.position(file, directory) ?? (nil, nil) }
        if self == EXIFSummary() { return nil }
    }

    private init() {}

    /// Converts `YYYY:MM:DD HH:MM:SS` to ISO 8601. Returns nil if the text is not a valid date, for example if it
    /// contains only spaces or zeros.
    private static func date(_ text: String, _ offset: String?) -> String? {
        let parts = text.split(whereSeparator: { $0 == ":" || $0 == " " }).compactMap { Int($0) }
        guard parts.count == 6, (1...9999).contains(parts[0]), (1...12).contains(parts[1]), (1...31).contains(parts[2]),
            (0...23).contains(parts[3]), (0...59).contains(parts[4]), (0...60).contains(parts[5])
        else { return nil }
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let year = String(repeating: "0", count: 4 - String(parts[0]).count) + String(parts[0])
        let zone = offset.flatMap { $0.count == 6 && "+-".contains($0.prefix(1)) ? $0 : nil } ?? ""
        return "\(year)-\(two(parts[1]))-\(two(parts[2]))T\(two(parts[3])):\(two(parts[4])):\(two(parts[5]))" + zone
    }

    private static func position(_ file: TIFFHeader, _ directory: Int) -> (latitude: Double?, longitude: Double?)? {
        func degrees(_ tag: Int, _ limit: Double, _ negative: String) -> Double? {
            let parts = file.rationals(tag + 1, in: directory)
            guard parts.count == 3, let direction = file.text(tag, in: directory) else { return nil }
            let value = parts[0] + parts[1] / 60 + parts[2] / 3600
            guard value <= limit else { return nil }
            return direction.hasPrefix(negative) ? -value : value
        }
        guard let latitude = degrees(1, 90, "S"), let longitude = degrees(3, 180, "W") else { return nil }
        return (latitude, longitude)
    }
}
