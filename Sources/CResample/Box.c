#include "CResample.h"
#include "Wide.h"

#include <stdlib.h>
#include <string.h>

// Rows are added up, then as many sums next to each other. 16 × 16 × 255 fits 16 bits.

enum { MOST = 16 };

// A pixel is loaded and stored as four samples, whatever the bands, and pairs of RGB as sixteen and three more: rows have room
// for the last ones.
enum { SLACK = 20 };
typedef uint16_t sums __attribute__((vector_size(8)));
typedef uint16_t wide_sums __attribute__((vector_size(32)));
typedef float quad __attribute__((vector_size(16)));

struct cbox {
    int width, height, bands, factor;
    // Whether rows come as sums, else as bytes.
    int of_sums;
    // Rows seen, and those of them in the sums.
    int seen, added;
    // Samples of a row.
    size_t samples;
    uint16_t *row;
    uint16_t *out;
};

// Rows of either kind, one or, so that sums are loaded and stored less often, two or four at once.
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

// One pixel of the result, of `across` sums next to each other.
__attribute__((always_inline)) static inline sums total(const uint16_t *from, int bands, int across) {
    sums result = {0};
    for (int i = 0; i < across; i++) {
        sums next;
        memcpy(&next, from + i * bands, sizeof next);
        result += next;
    }
    return result;
}

// What is less than a square counts as one.
__attribute__((always_inline)) static inline sums extended(sums part, float share) {
    return __builtin_convertvector(__builtin_convertvector(part, quad) * share + 0.5f, sums);
}

__attribute__((always_inline)) static inline void finish_bands(const cbox *s, int bands, int factor) {
    const int whole = s->width / factor, rest = s->width % factor;
    const size_t step = (size_t)(factor * bands);
    const float share = (float)factor / (float)s->added;
    int x = 0;
    if (factor == 2 && bands == 3 && s->added == factor)
        for (; x + 3 <= whole; x += 3) {
            wide_sums left, right;
            memcpy(&left, s->row + (size_t)x * step, sizeof left);
            memcpy(&right, s->row + (size_t)x * step + 3, sizeof right);
            left += right;
            left = __builtin_shufflevector(left, left, 0, 1, 2, 6, 7, 8, 12, 13, 14, 15, 15, 15, 15, 15, 15, 15);
            memcpy(s->out + (size_t)x * 3, &left, sizeof left);
        }
    for (; x < whole; x++) {
        sums pixel = total(s->row + (size_t)x * step, bands, factor);
        if (s->added < factor) pixel = extended(pixel, share);
        memcpy(s->out + (size_t)x * (size_t)bands, &pixel, sizeof pixel);
    }
    if (rest == 0) return;
    const sums pixel = extended(total(s->row + (size_t)whole * step, bands, rest), share * (float)factor / (float)rest);
    memcpy(s->out + (size_t)whole * (size_t)bands, &pixel, sizeof pixel);
}

__attribute__((always_inline)) static inline void finish_factor(const cbox *s, int factor) {
    switch (s->bands) {
    case 1: return finish_bands(s, 1, factor);
    case 2: return finish_bands(s, 2, factor);
    case 3: return finish_bands(s, 3, factor);
    default: return finish_bands(s, 4, factor);
    }
}

// Halving is what is asked for most.
WIDE static void finish(const cbox *s) {
    if (s->factor == 2) return finish_factor(s, 2);
    finish_factor(s, s->factor);
}

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
    const size_t pixels = ((size_t)width + (size_t)factor - 1) / (size_t)factor;
    s->out = malloc((pixels * (size_t)bands + SLACK) * sizeof *s->out);
    if (!s->row || !s->out) {
        cbox_free(s);
        return NULL;
    }
    return s;
}

const uint16_t *cbox_push(cbox *s, const void *rows, int count, int *taken) {
    const int wanted = s->factor - s->added, left = s->height - s->seen;
    if (count > wanted) count = wanted;
    if (count > left) count = left;
    for (int used = 0, some; used < count; used += some) {
        some = count - used >= 4 ? 4 : count - used >= 2 ? 2 : 1;
        const size_t first = (size_t)used * s->samples;
        const int begins = s->added + used == 0;
        if (s->of_sums)
            add_sums(s->row, (const uint16_t *)rows + first, s->samples, s->samples, some, begins);
        else
            add_bytes(s->row, (const uint8_t *)rows + first, s->samples, s->samples, some, begins);
    }
    *taken = count;
    s->added += count;
    s->seen += count;
    if (count == 0 || (s->added < s->factor && s->seen < s->height)) return NULL;
    finish(s);
    s->added = 0;
    return s->out;
}

void cbox_free(cbox *s) {
    if (!s) return;
    free(s->row);
    free(s->out);
    free(s);
}
