/// A file of the page at `/`. `scripts/embed-page` writes the files into `PageFiles.swift`, so that the program needs
/// nothing beside it.
struct PageFile: Sendable {
    let name: StaticString
    /// Media type.
    let type: StaticString
    /// Begins the SHA-256 of the text.
    let tag: StaticString
    let text: StaticString

    var bytes: [UInt8] { text.withUTF8Buffer { Array($0) } }

    init(name: StaticString, type: StaticString, tag: StaticString, text: StaticString) {
        self.name = name
        self.type = type
        self.tag = tag
        self.text = text
    }

    static func named(_ name: String) -> PageFile? { all.first { $0.name.description == name } }
}
