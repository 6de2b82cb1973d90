import ImageServer
import ImageServerNIO

extension RunConfiguration {
    /// Whether only this machine can connect. Of a socket that was passed it is not known.
    var isForThisMachine: Bool {
        listener.passed.isEmpty && ["127.", "localhost:", "[::1]:"].contains { "\(listener.listen)".hasPrefix($0) }
    }
}
