import ImageServer
import ImageServerNIO

extension RunConfiguration {
    /// Whether the server has the page: by default if it takes unsigned URLs and listens on a loopback address only.
    var isPlayground: Bool { playground ?? (site.signature.allowUnsigned && listener.listen.isOfThisMachine) }
}

extension ListenAddress {
    fileprivate var isOfThisMachine: Bool {
        ["127.", "localhost:", "[::1]:"].contains { description.hasPrefix($0) }
    }
}
