/// An error that can say why shared work was not done.
package protocol CancellableError: Error {
    static var cancelled: Self { get }
    var isCancellation: Bool { get }
    /// Whether the work was refused unbegun because it was not urgent enough: a more urgent caller may still have it done.
    var isLackOfUrgency: Bool { get }
}
