#include "CResample.h"
#include "Wide.h"

#include <stdlib.h>
#include <string.h>

// Adds `factor` rows, then `factor` adjacent sums. The most common squares, 2 × 2 in RGB, are summed in a single pass.
// The largest sum, 16 × 16 × 255, fits in 16 bits.

enum {
    MOST = 16,
    // The number of result rows that are returned together. The next stage processes four rows at a time.
    STRIP = 8,
    // Room beyond the end of our rows. A pixel is loaded and stored as four samples, whatever its number of bands, and
    // three RGB pixels are stored as sixteen samples.
    SLACK = 16,
};
typedef uint8_t wide_bytes __attribute__((vector_size(16)));
typedef uint16_t sums __attribute__((vector_size(8)));
typedef uint16_t wide_sums __attribute__((vector_size(32)));
typedef float quad __attribute__((vector_size(16)));

struct cbox {
    int width, height, bands, factor;
    // Whether input rows contain sums instead of bytes.
    int of_sums;
    // The number of rows processed, and the number of these rows in the current sums.
    int seen, added;
    // The number of samples per input row.
    size_t samples;
    uint16_t *row;
    // The number of samples per row of the result, and STRIP such rows.
    size_t out_samples;
    uint16_t *out;
};

// Adds rows of either kind. Adds one, two or four rows at a time, so that sums are loaded and stored less often.
#define ADDING(kind, name)                                                                                          \
    WIDE static void add_##name(                                                                                    \
        uint16_t *restrict sum, const kind *restrict rows, size_t stride, size_t count, int rest, int begins) {      \
        const kind *restrict two = rows + stride, *restrict three = two + stride, *restrict four = three + stride;   \
        switch (rest) {                                                                                             \
        case 1:                                                                                                     \
            if (begins)                                                                                             \
                for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)rows[i];                                      \
            else                                                                                                    \
                for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(sum[i] + rows[i]);                           \
            break;                                                                                                  \
        case 2:                                                                                                     \
            if (begins)                                                                                             \
                for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(rows[i] + two[i]);                           \
            else                                                                                                    \
                for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(sum[i] + rows[i] + two[i]);                  \
            break;                                                                                                  \
        default:                                                                                                    \
            if (begins)                                                                                             \
                for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(rows[i] + two[i] + three[i] + four[i]);      \
            else                                                                                                    \
                for (size_t i = 0; i < count; i++)                                                                  \
                    sum[i] = (uint16_t)(sum[i] + rows[i] + two[i] + three[i] + four[i]);                            \
        }                                                                                                           \
    }
ADDING(uint8_t, bytes)
ADDING(uint16_t, sums)

// Returns one pixel of the result, from `across` adjacent sums.
__attribute__((always_inline)) static inline sums total(const uint16_t *from, int bands, int across) {
    sums result = {0};
    for (int i = 0; i < across; i++) {
        sums next;
        memcpy(&next, from + i * bands, sizeof next);
        result += next;
    }
    return result;
}

// Scales a partial square so that it has the weight of a complete square.
__attribute__((always_inline)) static inline sums extended(sums part, float share) {
    return __builtin_convertvector(__builtin_convertvector(part, quad) * share + 0.5f, sums);
}

__attribute__((always_inline)) static inline void finish_bands(const cbox *s, uint16_t *out, int bands, int factor) {
    const int whole = s->width / factor, rest = s->width % factor;
    const size_t step = (size_t)(factor * bands);
    const float share = (float)factor / (float)s->added;
    for (int x = 0; x < whole; x++) {
        sums pixel = total(s->row + (size_t)x * step, bands, factor);
        if (s->added < factor) pixel = extended(pixel, share);
        memcpy(out + (size_t)x * (size_t)bands, &pixel, sizeof pixel);
    }
    if (rest == 0) return;
    const sums pixel = extended(total(s->row + (size_t)whole * step, bands, rest), share * (float)factor / (float)rest);
    memcpy(out + (size_t)whole * (size_t)bands, &pixel, sizeof pixel);
}

WIDE static void finish(const cbox *s, uint16_t *out) {
    switch (s->bands) {
    case 1: return finish_bands(s, out, 1, s->factor);
    case 2: return finish_bands(s, out, 2, s->factor);
    case 3: return finish_bands(s, out, 3, s->factor);
    default: return finish_bands(s, out, 4, s->factor);
    }
}

__attribute__((always_inline)) static inline void add_wide_bytes(wide_sums *sum, const uint8_t *from) {
    wide_bytes bytes;
    memcpy(&bytes, from, sizeof bytes);
    *sum += __builtin_convertvector(bytes, wide_sums);
}

__attribute__((always_inline)) static inline void add_wide_sums(wide_sums *sum, const uint16_t *from) {
    wide_sums sums;
    memcpy(&sums, from, sizeof sums);
    *sum += sums;
}

// Reduces two rows of RGB to one row with half as many pixels. Reads the rows in place, and never beyond their end.
#define HALVING(kind, name)                                                                                         \
    WIDE static void halve_##name(                                                                                  \
        uint16_t *restrict out, const kind *restrict one, const kind *restrict two, int width) {                    \
        const size_t end = (size_t)(width / 2) * 6;                                                                 \
        size_t at = 0;                                                                                              \
        for (; at + 19 <= end; at += 18, out += 9) {                                                                \
            wide_sums sum = {0};                                                                                    \
            add_wide_##name(&sum, one + at);                                                                        \
            add_wide_##name(&sum, one + at + 3);                                                                    \
            add_wide_##name(&sum, two + at);                                                                        \
            add_wide_##name(&sum, two + at + 3);                                                                    \
            sum = __builtin_shufflevector(sum, sum, 0, 1, 2, 6, 7, 8, 12, 13, 14, 15, 15, 15, 15, 15, 15, 15);      \
            memcpy(out, &sum, sizeof sum);                                                                          \
        }                                                                                                           \
        for (; at < end; at += 6, out += 3)                                                                         \
            for (size_t i = at; i < at + 3; i++)                                                                    \
                out[i - at] = (uint16_t)(one[i] + one[i + 3] + two[i] + two[i + 3]);                                \
        if (width % 2)                                                                                              \
            for (size_t i = at; i < at + 3; i++) out[i - at] = (uint16_t)(2 * (one[i] + two[i]));                   \
    }
HALVING(uint8_t, bytes)
HALVING(uint16_t, sums)

cbox *cbox_new(int width, int height, int bands, int factor, int of_sums) {
    if (width < 1 || height < 1 || bands < 1 || bands > 4 || factor < 1 || factor > MOST) return NULL;
    cbox *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->width = width;
    s->height = height;
    s->bands = bands;
    s->factor = factor;
    s->of_sums = of_sums;
    s->samples = (size_t)width * (size_t)bands;
    s->row = calloc(s->samples + SLACK, sizeof *s->row);
    s->out_samples = ((size_t)width + (size_t)factor - 1) / (size_t)factor * (size_t)bands;
    s->out = malloc((STRIP * s->out_samples + SLACK) * sizeof *s->out);
    if (!s->row || !s->out) {
        cbox_free(s);
        return NULL;
    }
    return s;
}

// Adds `count` rows to the sums. `count` is at most the number of rows that the current squares still need.
static void add_rows(cbox *s, const void *rows, int count) {
    for (int used = 0, some; used < count; used += some) {
        some = count - used >= 4 ? 4 : count - used >= 2 ? 2 : 1;
        const size_t first = (size_t)used * s->samples;
        const int begins = s->added + used == 0;
        if (s->of_sums)
            add_sums(s->row, (const uint16_t *)rows + first, s->samples, s->samples, some, begins);
        else
            add_bytes(s->row, (const uint8_t *)rows + first, s->samples, s->samples, some, begins);
    }
    s->added += count;
}

int cbox_push(cbox *s, const void *rows, int count, const uint16_t **sums, int *made) {
    const size_t row_bytes = s->samples * (s->of_sums ? sizeof(uint16_t) : 1);
    const int left = s->height - s->seen;
    if (count > left) count = left;
    int consumed = 0;
    *made = 0;
    *sums = s->out;
    while (consumed < count && *made < STRIP) {
        const uint8_t *const next = (const uint8_t *)rows + (size_t)consumed * row_bytes;
        uint16_t *const out = s->out + (size_t)*made * s->out_samples;
        const int wanted = s->factor - s->added;
        const int some = wanted < count - consumed ? wanted : count - consumed;
        consumed += some;
        s->seen += some;
        if (s->factor == 2 && s->bands == 3 && some == 2) {
            if (s->of_sums)
                halve_sums(out, (const uint16_t *)next, (const uint16_t *)next + s->samples, s->width);
            else
                halve_bytes(out, next, next + s->samples, s->width);
            ++*made;
            continue;
        }
        add_rows(s, next, some);
        if (s->added < s->factor && s->seen < s->height) continue;
        finish(s, out);
        s->added = 0;
        ++*made;
    }
    return consumed;
}

void cbox_free(cbox *s) {
    if (!s) return;
    free(s->row);
    free(s->out);
    free(s);
}
