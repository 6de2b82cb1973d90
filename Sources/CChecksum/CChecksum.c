#include "CChecksum.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>

bool crc32c_is_supported(void) { return __builtin_cpu_supports("sse4.2"); }

__attribute__((target("sse4.2"))) uint32_t crc32c_continued(uint32_t remainder, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    uint64_t crc = remainder;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        crc = _mm_crc32_u64(crc, word);
    }
    for (; count > 0; at++, count--) crc = _mm_crc32_u8((uint32_t)crc, *at);
    return (uint32_t)crc;
}

#elif defined(__aarch64__) && defined(__linux__)
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>

bool crc32c_is_supported(void) { return getauxval(AT_HWCAP) & HWCAP_CRC32; }

__attribute__((target("crc"))) uint32_t crc32c_continued(uint32_t remainder, const void *bytes, size_t count) {
    const unsigned char *at = bytes;
    for (; count >= 8; at += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, at, 8);
        remainder = __crc32cd(remainder, word);
    }
    for (; count > 0; at++, count--) remainder = __crc32cb(remainder, *at);
    return remainder;
}

#else

bool crc32c_is_supported(void) { return false; }

uint32_t crc32c_continued(uint32_t remainder, const void *bytes, size_t count) { return remainder; }

#endif
