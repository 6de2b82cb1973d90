import Glibc

/// The clocks of the operating system.
package enum SystemClock {
    /// Time since 1970, which jumps when the system clock is set.
    case unix
    /// Time since an arbitrary moment, for durations.
    case monotonic
    /// CPU time of the calling thread.
    case threadCPU

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
