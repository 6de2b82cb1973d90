#include "CResample.h"
#include "Wide.h"

#include <stdlib.h>
#include <string.h>

// Rows are added up, then each row of the result is made of as many sums next to each other. 16 × 16 × 255 fits 16 bits.

enum { MOST = 16 };

// A pixel is loaded and stored as four samples, whatever the bands: rows have room for the last one.
enum { SLACK = 4 };
typedef uint16_t sums __attribute__((vector_size(8)));
typedef float quad __attribute__((vector_size(16)));
typedef int quad_int __attribute__((vector_size(16)));
typedef uint8_t samples __attribute__((vector_size(4)));

struct cbox {
    int width, height, bands, factor;
    // Rows seen, and those of them in the sums.
    int seen, added;
    // Samples of a row.
    size_t samples;
    uint16_t *row;
    uint8_t *out;
};

WIDE static void begin(uint16_t *restrict sum, const uint8_t *restrict row, size_t count) {
    for (size_t i = 0; i < count; i++) sum[i] = row[i];
}

WIDE static void add(uint16_t *restrict sum, const uint8_t *restrict row, size_t count) {
    for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(sum[i] + row[i]);
}

// Four rows at once, so that sums are loaded and stored less often.
WIDE static void begin_four(uint16_t *restrict sum, const uint8_t *restrict rows, size_t stride, size_t count) {
    const uint8_t *restrict one = rows, *restrict two = one + stride, *restrict three = two + stride,
                           *restrict four = three + stride;
    for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(one[i] + two[i] + three[i] + four[i]);
}

WIDE static void add_four(uint16_t *restrict sum, const uint8_t *restrict rows, size_t stride, size_t count) {
    const uint8_t *restrict one = rows, *restrict two = one + stride, *restrict three = two + stride,
                           *restrict four = three + stride;
    for (size_t i = 0; i < count; i++) sum[i] = (uint16_t)(sum[i] + one[i] + two[i] + three[i] + four[i]);
}

// One pixel of the result, of `across` sums next to each other.
__attribute__((always_inline)) static inline void average(
    uint8_t *out, const uint16_t *from, int bands, int across, float share) {
    sums total = {0};
    for (int i = 0; i < across; i++) {
        sums next;
        memcpy(&next, from + i * bands, sizeof next);
        total += next;
    }
    const quad_int mean = __builtin_convertvector(__builtin_convertvector(total, quad) * share + 0.5f, quad_int);
    const samples four = __builtin_convertvector(mean, samples);
    memcpy(out, &four, sizeof four);
}

__attribute__((always_inline)) static inline void finish_bands(const cbox *s, int bands) {
    const int factor = s->factor, whole = s->width / factor, rest = s->width % factor;
    const float share = 1 / (float)(factor * s->added);
    for (int x = 0; x < whole; x++)
        average(s->out + (size_t)x * (size_t)bands, s->row + (size_t)x * (size_t)(factor * bands), bands, factor, share);
    if (rest > 0)
        average(
            s->out + (size_t)whole * (size_t)bands, s->row + (size_t)whole * (size_t)(factor * bands), bands, rest,
            1 / (float)(rest * s->added));
}

WIDE static void finish(const cbox *s) {
    switch (s->bands) {
    case 1: return finish_bands(s, 1);
    case 2: return finish_bands(s, 2);
    case 3: return finish_bands(s, 3);
    default: return finish_bands(s, 4);
    }
}

cbox *cbox_new(int width, int height, int bands, int factor) {
    if (width < 1 || height < 1 || bands < 1 || bands > 4 || factor < 1 || factor > MOST) return NULL;
    cbox *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->width = width;
    s->height = height;
    s->bands = bands;
    s->factor = factor;
    s->samples = (size_t)width * (size_t)bands;
    s->row = calloc(s->samples + SLACK, sizeof *s->row);
    s->out = malloc(((size_t)width + (size_t)factor - 1) / (size_t)factor * (size_t)bands + SLACK);
    if (!s->row || !s->out) {
        cbox_free(s);
        return NULL;
    }
    return s;
}

const uint8_t *cbox_push(cbox *s, const uint8_t *rows, size_t stride, int count, int *taken) {
    const int wanted = s->factor - s->added, left = s->height - s->seen;
    int used = 0;
    if (count > wanted) count = wanted;
    if (count > left) count = left;
    for (; used + 4 <= count; used += 4)
        (s->added + used == 0 ? begin_four : add_four)(s->row, rows + (size_t)used * stride, stride, s->samples);
    for (; used < count; used++)
        (s->added + used == 0 ? begin : add)(s->row, rows + (size_t)used * stride, s->samples);
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
