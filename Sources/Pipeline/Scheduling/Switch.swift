import Synchronization

/// Turned on once, by any thread.
final class Switch: Sendable {
    private let state = Atomic<Bool>(false)
    var isOn: Bool { state.load(ordering: .acquiring) }
    func turnOn() { state.store(true, ordering: .releasing) }
}
