#include "CChecksum.h"

// SHA-256 of FIPS 180-4 with the processor's own instructions, two messages side by side. A round needs the result of the
// round before it, which takes four cycles, while another one could begin every two: a second message fills the gaps.

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#define SHA __attribute__((target("sha,sse4.1,ssse3")))

bool sha256_pair_is_supported(void) {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_SSSE3) || !(c & bit_SSE4_1)) return false;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && b & bit_SHA;
}

static const uint32_t constants[64] __attribute__((aligned(16))) = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// The working variables as the instructions take them: a, b, e, f and c, d, g, h, the first of each in the highest word.
struct state {
    __m128i abef, cdgh;
};

// A message: whole blocks where it lies, then its end, padded.
struct lane {
    struct state state;
    const uint8_t *next;
    size_t blocks;
    uint8_t end[128];
    size_t end_blocks;
};

// Words 4g … 4g+3 of the message schedule; `w` holds the four before them in turn.
SHA static inline __attribute__((always_inline)) __m128i words(__m128i w[4], int g, const uint8_t *block) {
    if (g < 4) {
        const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
        w[g] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)block + g), swap);
    } else {
        __m128i sum = _mm_add_epi32(
            _mm_sha256msg1_epu32(w[g & 3], w[(g + 1) & 3]), _mm_alignr_epi8(w[(g + 3) & 3], w[(g + 2) & 3], 4));
        w[g & 3] = _mm_sha256msg2_epu32(sum, w[(g + 3) & 3]);
    }
    return _mm_add_epi32(w[g & 3], _mm_load_si128((const __m128i *)constants + g));
}

SHA static inline __attribute__((always_inline)) void four_rounds(struct state *s, __m128i words) {
    s->cdgh = _mm_sha256rnds2_epu32(s->cdgh, s->abef, words);
    s->abef = _mm_sha256rnds2_epu32(s->abef, s->cdgh, _mm_shuffle_epi32(words, 0x0e));
}

SHA static inline __attribute__((always_inline)) void add(struct state *s, struct state before) {
    s->abef = _mm_add_epi32(s->abef, before.abef);
    s->cdgh = _mm_add_epi32(s->cdgh, before.cdgh);
}

SHA static void take_both(struct lane *first, struct lane *second, size_t blocks) {
    struct state one = first->state, two = second->state;
    const uint8_t *from = first->next, *other = second->next;
    for (size_t i = 0; i < blocks; i++, from += 64, other += 64) {
        const struct state one_before = one, two_before = two;
        __m128i w[4], v[4];
#pragma clang loop unroll(full)
        for (int g = 0; g < 16; g++) {
            four_rounds(&one, words(w, g, from));
            four_rounds(&two, words(v, g, other));
        }
        add(&one, one_before);
        add(&two, two_before);
    }
    first->state = one;
    second->state = two;
}

SHA static void take_one(struct lane *lane, size_t blocks) {
    struct state state = lane->state;
    const uint8_t *from = lane->next;
    for (size_t i = 0; i < blocks; i++, from += 64) {
        const struct state before = state;
        __m128i w[4];
#pragma clang loop unroll(full)
        for (int g = 0; g < 16; g++) four_rounds(&state, words(w, g, from));
        add(&state, before);
    }
    lane->state = state;
}

SHA static void begin(struct lane *lane, const void *bytes, size_t count) {
    lane->state.abef = _mm_set_epi32(0x6a09e667, (int)0xbb67ae85, 0x510e527f, (int)0x9b05688c);
    lane->state.cdgh = _mm_set_epi32(0x3c6ef372, (int)0xa54ff53a, 0x1f83d9ab, 0x5be0cd19);
    size_t rest = count % 64;
    memset(lane->end, 0, sizeof lane->end);
    if (rest) memcpy(lane->end, (const uint8_t *)bytes + (count - rest), rest);
    lane->end[rest] = 0x80;
    lane->end_blocks = rest < 56 ? 1 : 2;
    uint64_t bits = __builtin_bswap64((uint64_t)count * 8);
    memcpy(lane->end + lane->end_blocks * 64 - 8, &bits, 8);
    lane->next = bytes;
    lane->blocks = count / 64;
    if (lane->blocks > 0) return;
    lane->next = lane->end;
    lane->blocks = lane->end_blocks;
    lane->end_blocks = 0;
}

// After blocks were taken: goes over to the end once the rest is through. False when all is.
static bool advance(struct lane *lane, size_t blocks) {
    lane->next += blocks * 64;
    lane->blocks -= blocks;
    if (lane->blocks == 0 && lane->end_blocks > 0) {
        lane->next = lane->end;
        lane->blocks = lane->end_blocks;
        lane->end_blocks = 0;
    }
    return lane->blocks > 0;
}

SHA static void finish(const struct lane *lane, uint8_t *digest) {
    uint32_t abef[4], cdgh[4];
    _mm_storeu_si128((__m128i *)abef, lane->state.abef);
    _mm_storeu_si128((__m128i *)cdgh, lane->state.cdgh);
    const uint32_t words[8] = {abef[3], abef[2], cdgh[3], cdgh[2], abef[1], abef[0], cdgh[1], cdgh[0]};
    for (int i = 0; i < 8; i++) {
        uint32_t word = __builtin_bswap32(words[i]);
        memcpy(digest + 4 * i, &word, 4);
    }
}

void sha256_pair(
    const void *first, size_t first_count, const void *second, size_t second_count, uint8_t *first_digest,
    uint8_t *second_digest) {
    struct lane one, two;
    begin(&one, first, first_count);
    begin(&two, second, second_count);
    bool has_one = true, has_two = true;
    while (has_one && has_two) {
        size_t blocks = one.blocks < two.blocks ? one.blocks : two.blocks;
        take_both(&one, &two, blocks);
        has_one = advance(&one, blocks);
        has_two = advance(&two, blocks);
    }
    struct lane *longer = has_one ? &one : &two;
    for (bool has_more = has_one || has_two; has_more;) {
        size_t blocks = longer->blocks;
        take_one(longer, blocks);
        has_more = advance(longer, blocks);
    }
    finish(&one, first_digest);
    finish(&two, second_digest);
}

#else

bool sha256_pair_is_supported(void) { return false; }

void sha256_pair(
    const void *first, size_t first_count, const void *second, size_t second_count, uint8_t *first_digest,
    uint8_t *second_digest) {}

#endif
