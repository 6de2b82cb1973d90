/// A path of the page.
///
///     /    /page/{version}/{file}    /page/samples/{file}    /page/catalogue.json    /page/cache.json
///     /page/variants/{key}/{digest of the original}    /page/folder.json?folder=NAME:PATH[&after=FILE]
package enum PageRoute: Sendable, Hashable {
    case document
    case file(String)
    case sample(String)
    case catalog
    case cache
    case folder
    case urls
    case variant(key: String, original: String)

    /// - Parameter segments: The segments after `page`, as sent. They need no percent-encoding.
    init(_ segments: ArraySlice<Substring>) throws(Problem) {
        let parts = segments.map(String.init)
        switch (parts.first, parts.count) {
        case ("catalogue.json", 1): self = .catalog
        case ("cache.json", 1): self = .cache
        case ("folder.json", 1): self = .folder
        case ("urls.json", 1): self = .urls
        case ("samples", 2): self = .sample(parts[1])
        case ("variants", 3): self = .variant(key: parts[1], original: parts[2])
        // Other versions are not found, because the content at a versioned path never changes.
        case (PageFile.version, 2): self = .file(parts[1])
        default: throw Operation.nothing
        }
    }
}
