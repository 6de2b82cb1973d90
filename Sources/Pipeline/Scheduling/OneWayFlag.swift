import Synchronization

/// A flag that any thread can turn on, and that stays on.
final class OneWayFlag: Sendable {
    private let state = Atomic<Bool>(false)
    var isOn: Bool { state.load(ordering: .acquiring) }
    func turnOn() { state.store(true, ordering: .releasing) }
}
