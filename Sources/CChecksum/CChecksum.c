#include "CChecksum.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#define TARGET __attribute__((target("sse4.2")))
#define STEP_8(crc, word) (uint32_t)_mm_crc32_u64(crc, word)
#define STEP_1(crc, byte) _mm_crc32_u8(crc, byte)
#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
static bool has_instruction(void) { return getauxval(AT_HWCAP) & HWCAP_CRC32; }
#define TARGET __attribute__((target("crc")))
#define STEP_8(crc, word) __crc32cd(crc, word)
#define STEP_1(crc, byte) __crc32cb(crc, byte)
#else
static bool has_instruction(void) { return false; }
#define TARGET
#define STEP_8(crc, word) crc
#define STEP_1(crc, byte) crc
#endif

TARGET static uint32_t by_instruction(uint32_t crc, const unsigned char *at, size_t count) {
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = STEP_8(crc, word);
    }
    for (; count > 0; at++, count--) crc = STEP_1(crc, *at);
    return crc;
}

uint32_t crc32c_by_bits(uint32_t crc, const void *bytes, size_t count) {
    for (const unsigned char *at = bytes; count > 0; at++, count--) {
        crc ^= *at;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
    }
    return crc;
}

uint32_t crc32c_continued(uint32_t crc, const void *bytes, size_t count) {
    return has_instruction() ? by_instruction(crc, bytes, count) : crc32c_by_bits(crc, bytes, count);
}
