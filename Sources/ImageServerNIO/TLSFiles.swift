/// What the server shows and proves of itself over TLS.
package struct TLSFiles: Sendable, Hashable {
    /// A PEM file: the server's certificate, then those that link it to one that clients trust.
    package var certificate: String
    /// A PEM file with the private key of the first certificate.
    package var key: String

    package init(certificate: String, key: String) {
        self.certificate = certificate
        self.key = key
    }
}
