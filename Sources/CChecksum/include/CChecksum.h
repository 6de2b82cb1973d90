#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// CRC-32C by the processor's own instruction, which Swift cannot name.

/// Whether this processor has it.
bool crc32c_is_supported(void);

/// The remainder after further bytes; begins and ends without inversion. Only where `crc32c_is_supported()`.
uint32_t crc32c_continued(uint32_t remainder, const void *bytes, size_t count);

/// SHA-256 of two messages side by side, by the processor's own instructions.

/// Whether this processor has them.
bool sha256_pair_is_supported(void);

/// The digests of two messages, 32 bytes each. Only where `sha256_pair_is_supported()`.
void sha256_pair(
    const void *first, size_t first_count, const void *second, size_t second_count, uint8_t *first_digest,
    uint8_t *second_digest);
