import Glibc

/// The clocks of the operating system.
package enum SystemClock {
    /// Time since 1970, which jumps when the system clock is set.
    case unix
    /// Time since an arbitrary moment, for durations.
    case monotonic
    /// CPU time of the calling thread.
    case threadCPU

    /// Nanoseconds since an arbitrary moment, by a clock that advances every few milliseconds and is the cheapest to read.
    package static var coarseNanoseconds: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    package var seconds: Double {
        var time = timespec()
        switch self {
        case .unix: clock_gettime(CLOCK_REALTIME, &time)
        case .monotonic: clock_gettime(CLOCK_MONOTONIC, &time)
        case .threadCPU: clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
