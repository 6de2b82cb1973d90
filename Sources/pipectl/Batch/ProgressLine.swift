import Glibc

/// The progress line of a batch on a terminal, without I/O. The caller passes in the time and the counts and writes the
/// resulting text.
struct ProgressLine: Sendable {
    /// The expected number of items, or nil if it is unknown.
    var total: Int?
    /// The width of the terminal in columns. A longer line would wrap and could not be erased.
    var width = 80
    private var lastShown: Double?
    private var rate = 0.0
    private var rateSince: (seconds: Double, items: Int) = (0, 0)
    static let clear = "\r\u{1b}[K"

    init(total: Int?, width: Int = 80) {
        self.total = total
        self.width = width
    }

    /// Returns the text to write, or nil if the previous text was returned less than 0.1 seconds ago.
    mutating func update(_ summary: BatchSummary, seconds: Double) -> String? {
        if let lastShown, seconds - lastShown < 0.1 { return nil }
        lastShown = seconds
        let span = seconds - rateSince.seconds
        if span >= 1 || rate == 0 {
            let now = span > 0 ? Double(summary.items - rateSince.items) / span : 0
            // Averaging the old and new rates keeps the display steady but follows changes within seconds.
            rate = rate == 0 ? now : (rate + now) / 2
            if span >= 1 { rateSince = (seconds, summary.items) }
        }
        return Self.clear + String(text(summary).prefix(max(10, width - 1)))
    }

    private func text(_ summary: BatchSummary) -> String {
        var text = String(summary.items)
        if let total {
            let share = total > 0 ? min(100, summary.items * 100 / total) : 100
            text += "/\(total) \(share)%"
        }
        text += " · \(Readable.tenths(rate))/s"
        if let total, rate > 0, summary.items < total, isKnown {
            text += " · \(Readable.duration(seconds: Double(total - summary.items) / rate)) left"
        }
        text += " · \(summary.hits) hits"
        if summary.failed > 0 { text += " · \(summary.failed) errors" }
        return text
    }

    /// Whether there are enough measurements to estimate the remaining time. The beginning is not representative,
    /// because workers are starting and the first items may come from the caches.
    private var isKnown: Bool { rateSince.seconds >= 2 && rateSince.items >= 5 }

    /// Returns the width of the terminal in columns, or 80 if it is unknown.
    static func columns(of descriptor: Int32) -> Int {
        var size = winsize()
        guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return 80 }
        return Int(size.ws_col)
    }
}
