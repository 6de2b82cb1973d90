import Glibc

/// The clocks of the operating system.
package enum SystemClock {
    /// Time since 1970, which jumps when the system clock is set.
    case unix
    /// Time since an arbitrary moment, for durations.
    case monotonic
    /// The same, and time for which the machine was suspended.
    case boot
    /// CPU time of the calling thread.
    case threadCPU

    /// Nanoseconds since an arbitrary moment, by a clock that advances every few milliseconds and is the cheapest to read.
    package static var coarseNanoseconds: UInt64 { nanoseconds(CLOCK_MONOTONIC_COARSE) }

    /// Nanoseconds of `boot`.
    package static var bootNanoseconds: UInt64 { nanoseconds(CLOCK_BOOTTIME) }

    private static func nanoseconds(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    package var seconds: Double {
        var time = timespec()
        switch self {
        case .unix: clock_gettime(CLOCK_REALTIME, &time)
        case .monotonic: clock_gettime(CLOCK_MONOTONIC, &time)
        case .boot: clock_gettime(CLOCK_BOOTTIME, &time)
        case .threadCPU: clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
