/// Keeps a large value on the heap, where copies share it until one of them is changed.
///
/// The values passed between stages contain dozens of strings and arrays. Asynchronous functions copy such values
/// often, and each copy retains every member. A boxed value retains a single reference.
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
