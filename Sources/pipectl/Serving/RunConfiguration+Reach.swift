import ImageServer
import ImageServerNIO

extension RunConfiguration {
    /// Whether only this machine can connect, including to the operators' address. The value is false if sockets were
    /// passed, because their addresses are unknown.
    var isForThisMachine: Bool {
        listener.passed.isEmpty
            && [listener.listen, adminListen ?? listener.listen].allSatisfy { address in
                ["127.", "localhost:", "[::1]:"].contains { "\(address)".hasPrefix($0) }
            }
    }
}
