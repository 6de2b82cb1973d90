#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// CRC-32C by the processor's own instruction, which Swift cannot name.

/// Whether this processor has it.
bool crc32c_is_supported(void);

/// The remainder after further bytes; begins and ends without inversion. Only where `crc32c_is_supported()`.
uint32_t crc32c_continued(uint32_t remainder, const void *bytes, size_t count);
