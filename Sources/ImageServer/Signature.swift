/// Who may have a URL made for them. Signed URLs are not built yet: a signature is either the word `unsigned`, where the
/// setting `allowUnsigned` permits it, or refused.
package struct Signature: Sendable {
    /// The word in place of a signature.
    static let unsigned = "unsigned"
    /// The setting `allowUnsigned`.
    package var allowUnsigned: Bool

    package init(allowUnsigned: Bool) { self.allowUnsigned = allowUnsigned }

    /// Throws a 403 unless the signature is good.
    func check(_ signature: String) throws(Problem) {
        guard signature == Self.unsigned else {
            throw Problem(
                .badSignature, "this server verifies no signatures yet; the segment is `unsigned` where that is allowed"
            )
        }
        guard allowUnsigned else {
            throw Problem(
                .badSignature, "unsigned URLs are off; the operator of this server can allow them with `allowUnsigned`")
        }
    }
}
