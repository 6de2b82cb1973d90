#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Updates a CRC-32C with additional bytes, without the inversions at the beginning and the end. Uses the processor's
/// CRC instruction, which Swift cannot emit, if it is available.
uint32_t crc32c_continued(uint32_t crc, const void *bytes, size_t count);

/// Updates a CRC-32C bit by bit, for processors without a CRC instruction.
uint32_t crc32c_by_bits(uint32_t crc, const void *bytes, size_t count);
