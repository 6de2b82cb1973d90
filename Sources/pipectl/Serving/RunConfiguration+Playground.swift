import ImageServer
import ImageServerNIO

extension RunConfiguration {
    /// Whether the page is served. A server that answers anybody's URLs, but only on this machine, is one that somebody is
    /// trying out.
    var isPlayground: Bool { playground ?? (site.signature.allowUnsigned && listener.listen.isOfThisMachine) }
}

extension ListenAddress {
    fileprivate var isOfThisMachine: Bool {
        ["127.", "localhost:", "[::1]:"].contains { description.hasPrefix($0) }
    }
}
