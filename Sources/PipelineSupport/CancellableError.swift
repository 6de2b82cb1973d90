/// An error that tells whether shared work was cancelled or refused.
package protocol CancellableError: Error {
    static var cancelled: Self { get }
    var isCancellation: Bool { get }
    /// Whether the work was refused before it began because it was not urgent enough. It may still be accepted for a
    /// more urgent caller.
    var isLackOfUrgency: Bool { get }
}
