#if !TLS
    /// Stands for TLS in a build without it; there is no value of it.
    enum SecureTransport: Sendable {}
#endif
