/// A box to fit into, in pixels; at least one edge is given.
struct PixelBox: Sendable, Hashable {
    var width: Int?
    var height: Int?
}

enum Gravity: String, Sendable, Hashable, CaseIterable {
    case centre, north, northEast = "north-east", east, southEast = "south-east", south, southWest = "south-west"
    case west, northWest = "north-west", attention, entropy
}

/// What stays in view when something is cropped away.
enum Anchor: Sendable, Hashable {
    case gravity(Gravity)
    /// A point as shares of width and height, each 0…1.
    case focus(x: Double, y: Double)
}

/// A length in pixels, or a share (1 = all) of the smaller edge.
enum EdgeLength: Sendable, Hashable {
    case pixels(Double)
    case share(Double)
}

/// sRGB colour with alpha, each 0…255.
struct Colour: Sendable, Hashable {
    var red: UInt8
    var green: UInt8
    var blue: UInt8
    var alpha: UInt8 = 255
}
