import Synchronization

/// A cache of named pictures at the sizes at which they were used, so that a mask is not decoded and scaled again for
/// each picture in a series.
final class ScaledPictures: Sendable {
    static let shared = ScaledPictures(byteLimit: 32 << 20)

    private struct Entry {
        let bytes: [UInt8]
        let form: String
        let pixels: NamedPixels
        var size: Int { bytes.count + pixels.storage.count }
    }
    /// The entries, least recently used first.
    private let entries = Mutex<[Entry]>([])
    /// The maximum total size of encoded and decoded bytes.
    private let byteLimit: Int
    /// The maximum number of entries, which keeps the linear search fast.
    private static let countLimit = 64

    init(byteLimit: Int) { self.byteLimit = byteLimit }

    /// Returns cached pixels. Compares the bytes instead of a digest, because equal arrays usually share their storage,
    /// which `==` detects immediately.
    func pixels(of bytes: [UInt8], _ form: String) -> NamedPixels? {
        entries.withLock { entries in
            guard let index = entries.firstIndex(where: { $0.form == form && $0.bytes == bytes }) else { return nil }
            let entry = entries.remove(at: index)
            entries.append(entry)
            return entry.pixels
        }
    }

    func keep(_ pixels: NamedPixels, of bytes: [UInt8], _ form: String) {
        let entry = Entry(bytes: bytes, form: form, pixels: pixels)
        // Do not store a picture that would evict most of the others.
        guard entry.size <= byteLimit / 4 else { return }
        entries.withLock { entries in
            entries.removeAll { $0.form == form && $0.bytes == bytes }
            entries.append(entry)
            var total = entries.reduce(0) { $0 + $1.size }
            while total > byteLimit || entries.count > Self.countLimit { total -= entries.removeFirst().size }
        }
    }
}
