import Glibc

/// The clocks of the operating system.
package enum SystemClock {
    /// The time since 1970. It jumps when the system clock is set.
    case unix
    /// The time since an arbitrary moment, for measuring durations.
    case monotonic
    /// Like `monotonic`, but including the time for which the machine was suspended.
    case boot
    /// The CPU time of the calling thread.
    case threadCPU
    /// The CPU time of all threads of the process.
    case processCPU

    /// The number of nanoseconds since an arbitrary moment. This clock advances every few milliseconds and is the
    /// cheapest to read.
    package static var coarseNanoseconds: UInt64 { nanoseconds(CLOCK_MONOTONIC_COARSE) }

    /// The nanoseconds of the `boot` clock.
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
        case .processCPU: clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }
}
