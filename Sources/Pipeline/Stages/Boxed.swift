/// Keeps a large value on the heap, shared until it is changed.
///
/// The values that stages pass on hold dozens of strings and arrays. Asynchronous functions copy them at every turn,
/// and copying such a value retains each member; boxed, it retains one reference.
@propertyWrapper
struct Boxed<Value: Sendable>: Sendable {
    private final class Box: Sendable {
        let value: Value

        init(_ value: Value) { self.value = value }
    }

    private var box: Box

    init(wrappedValue: Value) { box = Box(wrappedValue) }

    @inline(__always) var wrappedValue: Value {
        get { box.value }
        set { box = Box(newValue) }
    }
}
