import Glibc

/// A network namespace with only a loopback interface. A test assigns addresses to the interface, so traffic to a
/// forbidden address reaches only the test's own server.
///
/// In Linux, each thread has its own current namespace. A thread that has called `enter` opens its sockets in this
/// namespace.
public final class LoneNetwork: Sendable {
    private let descriptor: Int32

    /// Creates a namespace with `127.0.0.1` and these IPv4 addresses on its loopback interface. Returns nil if this is
    /// not permitted.
    public init?(addresses: [String]) {
        let descriptor = LoopbackOrigin.onOwnThread { () -> Int32 in
            guard Self.call("unshare", { unsafeBitCast($0, to: Unshare.self)(Self.newNetwork) }),
                Self.bringUp(addresses)
            else { return -1 }
            return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)
        }
        guard let descriptor, descriptor >= 0 else { return nil }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    /// Whether this process may create a network namespace, which requires CAP_SYS_ADMIN.
    public static let isPermitted = LoneNetwork(addresses: []) != nil

    /// Makes the calling thread open its sockets in this namespace from now on. Returns false if this failed.
    public func enter() -> Bool {
        Self.call("setns") { unsafeBitCast($0, to: SetNamespace.self)(descriptor, Self.newNetwork) }
    }

    /// Runs `body` on a new thread in this namespace and returns its result, or nil if this is not possible.
    public func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value? {
        LoopbackOrigin.onOwnThread { [self] in enter() ? body() : nil } ?? nil
    }

    /// Starts an origin in this namespace. See `LoopbackOrigin`.
    public func origin(
        host: String = "127.0.0.1", port: UInt16 = 0, handler: @escaping @Sendable (OriginRequest) -> OriginReply
    ) throws -> LoopbackOrigin {
        let started = LoopbackOrigin.onOwnThread { [self] in
            Result<LoopbackOrigin, any Error> {
                guard enter() else { throw OriginError("cannot enter the network namespace", errno) }
                return try LoopbackOrigin(host: host, port: port, handler: handler)
            }
        }
        guard let started else { throw OriginError("cannot start a thread", EAGAIN) }
        return try started.get()
    }

    // The C library declares both functions only with _GNU_SOURCE, which Swift's Glibc module does not define.
    private typealias Unshare = @convention(c) (Int32) -> Int32
    private typealias SetNamespace = @convention(c) (Int32, Int32) -> Int32

    private static func call(_ name: String, _ function: (UnsafeMutableRawPointer) -> Int32) -> Bool {
        guard let symbol = dlsym(nil, name) else { return false }
        return function(symbol) == 0
    }

    /// CLONE_NEWNET in <linux/sched.h>.
    private static let newNetwork: Int32 = 0x4000_0000

    /// Brings up the interface `lo` and one alias per address, with the ioctls of netdevice(7).
    private static func bringUp(_ addresses: [String]) -> Bool {
        let socket = Glibc.socket(AF_INET, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard socket >= 0 else { return false }
        defer { close(socket) }
        // struct ifreq: a name of 16 bytes, then a union of 24 bytes.
        func request(_ code: UInt, _ name: String, _ fill: (inout [UInt8]) -> Void) -> Bool {
            var bytes = [UInt8](repeating: 0, count: 40)
            bytes.replaceSubrange(0..<name.utf8.count, with: name.utf8)
            fill(&bytes)
            return bytes.withUnsafeMutableBytes { ioctl(socket, code, $0.baseAddress!) } == 0
        }
        let setFlags: UInt = 0x8914
        let setAddress: UInt = 0x8916
        let isUp = request(setFlags, "lo") { $0[16] = UInt8(IFF_UP | IFF_RUNNING) }
        return isUp
            && addresses.enumerated().allSatisfy { index, text in
                request(setAddress, "lo:\(index)") { bytes in
                    bytes[16] = UInt8(AF_INET)
                    var address = in_addr()
                    inet_pton(AF_INET, text, &address)
                    withUnsafeBytes(of: address) { bytes.replaceSubrange(20..<24, with: $0) }
                }
            }
    }
}

extension LoopbackOrigin {
    /// Runs `body` on a new thread and returns its result, or nil if no thread can be started.
    static func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value? {
        let box = ValueBox<Value>()
        guard let thread = start({ box.value = body() }) else { return nil }
        pthread_join(thread, nil)
        return box.value
    }

    // `@unchecked Sendable`: the thread writes the value, and it is read only after the thread has been joined.
    private final class ValueBox<Value>: @unchecked Sendable { var value: Value? }
}
