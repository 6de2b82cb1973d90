/// Keeps a large value on the heap, shared until somebody changes it.
///
/// What the stages hand on holds dozens of strings and arrays. Copied as a whole, as asynchronous functions do at every
/// turn, each of them is counted; boxed it is one reference.
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
