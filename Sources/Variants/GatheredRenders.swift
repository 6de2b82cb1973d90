import PipelineSupport
import Synchronization

/// Runs renders that share a decode on threads of this process: one after another on the thread of the first, so that
/// each reuses the pictures left by the previous ones.
final class GatheredRenders: Sendable {
    typealias Work = @Sendable (SharedPictures) -> Void

    /// Waiting renders by the decode they share. A group has an entry as long as a thread is working on it.
    private let waiting = Mutex<[SharedDecode: [Work]]>([:])

    /// Runs `work` on one of `threads`, after earlier renders that share its decode.
    func submit(_ shared: SharedDecode?, to threads: OwnedThreads, _ work: @escaping Work) {
        guard let shared else { return threads.submit { work(SharedPictures()) } }
        let isFirst = waiting.withLock { waiting in
            waiting[shared]?.append(work)
            guard waiting[shared] == nil else { return false }
            waiting[shared] = [work]
            return true
        }
        guard isFirst else { return }
        threads.submit { [self] in
            let pictures = SharedPictures()
            while let next = next(shared) { next(pictures) }
        }
    }

    private func next(_ shared: SharedDecode) -> Work? {
        waiting.withLock { waiting in
            guard let first = waiting[shared]?.first else {
                waiting[shared] = nil
                return nil
            }
            waiting[shared]?.removeFirst()
            return first
        }
    }
}
