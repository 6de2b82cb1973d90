/// An error that can say that the work was cancelled.
package protocol CancellableError: Error {
    static var cancelled: Self { get }
    var isCancellation: Bool { get }
}
