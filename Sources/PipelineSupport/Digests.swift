import CCrypto

/// Computes SHA-256 (FIPS 180-4) incrementally. Uses libcrypto, which uses the processor's SHA instructions.
package struct SHA256: Sendable {
    private var state = SHA256_CTX()

    package init() { SHA256_Init(&state) }

    package mutating func update(_ piece: UnsafeRawBufferPointer) {
        SHA256_Update(&state, piece.baseAddress, piece.count)
    }

    /// Returns the digest, which has 32 bytes, and consumes the value.
    package consuming func finalize() -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Int(SHA256_DIGEST_LENGTH)) { bytes, count in
            SHA256_Final(bytes.baseAddress, &state)
            count = bytes.count
        }
    }

    package static func digest(of bytes: [UInt8]) -> [UInt8] {
        var running = SHA256()
        bytes.withUnsafeBytes { running.update($0) }
        return running.finalize()
    }
}

/// Returns the SHA-256 as 64 lowercase hexadecimal digits.
package func sha256Hex(_ bytes: [UInt8]) -> String { hex(SHA256.digest(of: bytes)) }

/// Returns the SHA-256 of a UTF-8 string as 64 lowercase hexadecimal digits.
package func sha256Hex(_ text: String) -> String { sha256Hex(Array(text.utf8)) }

/// Returns the HMAC (RFC 2104) with SHA-256, which has 32 bytes.
package func hmacSHA256(_ text: [UInt8], key: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(SHA256_DIGEST_LENGTH)) { bytes, count in
        HMAC(EVP_sha256(), key, Int32(key.count), text, text.count, bytes.baseAddress, nil)
        count = bytes.count
    }
}

/// Returns the MD5 of bytes, which object stores use in `ETag` and `Content-MD5`. MD5 does not protect against
/// attackers.
package func md5(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: Int(MD5_DIGEST_LENGTH)) { digest, count in
        MD5(bytes, bytes.count, digest.baseAddress)
        count = digest.count
    }
}

/// Whether two byte arrays are equal. The running time reveals only whether the lengths are equal, not where the bytes
/// differ.
package func areEqualInConstantTime(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
}
