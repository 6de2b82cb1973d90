#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// CRC-32C: the remainder after further bytes, without the inversions at the beginning and the end. By the processor's
/// instruction for it, which Swift cannot name.
uint32_t crc32c_continued(uint32_t crc, const void *bytes, size_t count);

/// The same bit by bit, for processors without the instruction.
uint32_t crc32c_by_bits(uint32_t crc, const void *bytes, size_t count);
