#include "CResample.h"
#include "Wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// The vertical filter comes first. Each source row is weighted and added to the sums of the approximately six output
// rows that it contributes to, so that no source rows are stored. A complete sum is filtered horizontally, encoded and
// written.

enum {
    // The number of lobes of Lanczos 3.
    LOBES = 3,
    // The number of source rows that are added at once, so that sums are loaded and stored less often.
    BATCH = 4,
    // The maximum number of output rows that a batch contributes to: 2 * LOBES + 1 for one row, plus at most one for
    // each additional row.
    SLOTS = 16,
    // The number of floats of a row that are processed at once. A batch of them fits in the first-level cache.
    CHUNK = 768,
    // The number of entries in the table from the square root of light to bytes. A table step is at most an eighth of a
    // byte step.
    ROOTS = 4096,
    // The number of coefficients of the curve.
    POWERS = 6,
};

// Sums are loaded eight floats at a time, whatever the number of bands, so rows are padded with zeros.
enum { LANES = 8, SLACK = LANES };
typedef float quad __attribute__((vector_size(16)));
typedef float octet __attribute__((vector_size(32)));
typedef int quad_int __attribute__((vector_size(16)));

typedef struct {
    // The first source sample and the number of weights for each output sample.
    int *start;
    int *count;
    // The weights, `taps` for each output sample.
    float *weights;
    int taps;
} kernel;

// Converts byte steps, which may be fractional, to light: a straight line up to 10, and a polynomial above.
typedef struct {
    float powers[POWERS];
    float straight;
} curve;

struct cresample {
    int width, height, bands, out_width, out_height;
    uint8_t *out;
    kernel horizontal, vertical;
    // The number of horizontal taps that are computed for each output sample. The last taps may have weight 0.
    int reach;
    // The numbers of source rows processed, output rows completed and output rows begun.
    int seen, finished, begun;
    // The number of samples per source row, and of floats per row of sums, which is padded with zeros.
    size_t samples, row;
    // SLOTS rows of sums. Output row y uses slot y % SLOTS.
    float *sums;
    // An output row in linear light, with room to store the last pixel as four floats.
    float *filtered;
    // BATCH chunks of source rows as floats.
    float *light;
    // The rows of an incomplete batch in their input format.
    uint8_t *pending;
    int pending_count;
    // The bytes per input row, whether samples have 16 bits instead of 8, and the factor that scales samples to byte
    // steps.
    size_t row_bytes;
    int is_wide;
    float share;
    // The curve from stored values to light, and the table from the square root of light to bytes.
    curve curve;
    uint8_t byte_of_root[ROOTS];
};

static double lanczos(double x) {
    x = fabs(x);
    if (x < 1e-9) return 1;
    if (x >= LOBES) return 0;
    // Uses sin 3a = 3 sin a - 4 sin³ a, because LOBES is 3.
    const double p = M_PI * x, s = sin(p / LOBES);
    return LOBES * (3 - 4 * s * s) * s * s / (p * p);
}

// Computes weights for reducing `from` samples to `to` samples, with aligned centers. Each set of weights sums to 1.
// The room for a set is a multiple of `unit`. Returns 0 if out of memory.
static int kernel_init(kernel *k, double from, int to, int unit) {
    const double scale = from / to;
    const int most = (int)ceil(from) - 1;
    k->taps = ((int)ceil(2 * LOBES * scale) + 2 + unit - 1) / unit * unit;
    k->start = calloc((size_t)to, sizeof *k->start);
    k->count = calloc((size_t)to, sizeof *k->count);
    k->weights = calloc((size_t)to * (size_t)k->taps, sizeof *k->weights);
    double *set = calloc((size_t)k->taps, sizeof *set);
    if (!k->start || !k->count || !k->weights || !set) {
        free(set);
        return 0;
    }
    for (int i = 0; i < to; i++) {
        const double center = (i + 0.5) * scale - 0.5;
        const int lowest = (int)floor(center - LOBES * scale) + 1;
        const int highest = (int)ceil(center + LOBES * scale) - 1;
        const int first = lowest < 0 ? 0 : lowest;
        const int last = highest > most ? most : highest;
        memset(set, 0, (size_t)k->taps * sizeof *set);
        double sum = 0;
        for (int at = lowest; at <= highest; at++) {
            const double weight = lanczos((at - center) / scale);
            const int clamped = at < first ? first : at > last ? last : at;
            set[clamped - first] += weight;
            sum += weight;
        }
        k->start[i] = first;
        k->count[i] = last - first + 1;
        for (int j = 0; j < k->count[i]; j++) k->weights[(size_t)i * k->taps + j] = (float)(set[j] / sum);
    }
    free(set);
    return 1;
}

static void kernel_free(kernel *k) {
    free(k->start);
    free(k->count);
    free(k->weights);
}

// The sRGB curve (IEC 61966-2-1).
static double linear(double stored) {
    return stored <= 0.04045 ? stored / 12.92 : pow((stored + 0.055) / 1.055, 2.4);
}

// Mixes the sRGB curve with a straight line. At the 256 byte values, the polynomial differs from the sRGB curve by at
// most 0.012 byte steps.
static void curve_init(cresample *s, double share) {
    static const double srgb[POWERS] = {0.0009242446976713836, 0.00012773051275871694, 8.006471034605056e-06,
        4.0026304048979e-08, -7.173046878694578e-11, 7.938346025448614e-14};
    for (int i = 0; i < POWERS; i++) s->curve.powers[i] = (float)(share * srgb[i] + (i == 1 ? (1 - share) / 255 : 0));
    s->curve.straight = (float)((share / 12.92 + 1 - share) / 255);
    // The light value at which the next byte value begins.
    double next = -1;
    for (int i = 0, byte = -1; i < ROOTS; i++) {
        const double root = (double)i / (ROOTS - 1);
        while (byte < 255 && root * root >= next) {
            const double end = (++byte + 0.5) / 255;
            next = share * linear(end) + (1 - share) * end;
        }
        s->byte_of_root[i] = (uint8_t)byte;
    }
}

static inline float light_of(const curve *c, float v) {
    float p = c->powers[5];
    p = p * v + c->powers[4];
    p = p * v + c->powers[3];
    p = p * v + c->powers[2];
    p = p * v + c->powers[1];
    p = p * v + c->powers[0];
    const float straight = v * c->straight;
    return v <= 10 ? straight : p;
}

// Converts bytes, or 16-bit samples scaled by `share`, to light. If `bands` is not 0, pixels end with alpha, which is
// already linear and is multiplied with the other bands.
#define LINEARISING(kind, name)                                                                                     \
    WIDE static void linearise_##name(                                                                              \
        float *restrict light, const kind *restrict from, size_t count, float share, curve c, size_t bands) {       \
        for (size_t i = 0; i < count; i++) light[i] = light_of(&c, (float)from[i] * share);                         \
        if (bands == 0) return;                                                                                     \
        for (size_t i = 0; i < count; i += bands) {                                                                 \
            const float alpha = (float)from[i + bands - 1] * share * (1.0f / 255.0f);                               \
            for (size_t band = 0; band + 1 < bands; band++) light[i + band] *= alpha;                               \
            light[i + bands - 1] = alpha;                                                                           \
        }                                                                                                           \
    }
LINEARISING(uint8_t, bytes)
LINEARISING(uint16_t, wide)

WIDE static void add(float *restrict sum, const float *restrict light, const float *restrict weights, size_t count) {
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++)
        sum[i] = sum[i] + a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
}

// Like `add`, but adds to the sums of two output rows, so that light is loaded only once.
WIDE static void add_to_two(
    float *restrict one, float *restrict two, const float *restrict light, const float *restrict weights_one,
    const float *restrict weights_two, size_t count) {
    const float a = weights_one[0], b = weights_one[1], c = weights_one[2], d = weights_one[3];
    const float e = weights_two[0], f = weights_two[1], g = weights_two[2], h = weights_two[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++) {
        one[i] = one[i] + a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
        two[i] = two[i] + e * rows[0][i] + f * rows[1][i] + g * rows[2][i] + h * rows[3][i];
    }
}

// Like `add`, but for sums that are still empty.
WIDE static void begin(float *restrict sum, const float *restrict light, const float *restrict weights, size_t count) {
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++)
        sum[i] = a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
}

// Returns indexes into the table from the square root of light, for one sample and for four samples.
static inline uint16_t root_of(float light) {
    light = __builtin_elementwise_min(__builtin_elementwise_max(light, 0.0f), 1.0f);
    return (uint16_t)(int)(__builtin_elementwise_sqrt(light) * (ROOTS - 1) + 0.5f);
}

static inline quad_int roots_of(quad light) {
    light = __builtin_elementwise_min(__builtin_elementwise_max(light, (quad){0}), (quad){1, 1, 1, 1});
    return __builtin_convertvector(__builtin_elementwise_sqrt(light) * (ROOTS - 1) + 0.5f, quad_int);
}

// Encodes a filtered row to bytes in chunks, so that everything except the table lookup is vectorized.
static inline void encode(
    uint8_t *restrict out, const float *restrict light, size_t count, const uint8_t *restrict byte_of_root) {
    uint16_t roots[CHUNK];
    for (size_t left = 0; left < count; left += CHUNK) {
        const size_t length = count - left < CHUNK ? count - left : CHUNK;
        for (size_t i = 0; i < length; i++) roots[i] = root_of(light[left + i]);
        for (size_t i = 0; i < length; i++) out[left + i] = byte_of_root[roots[i]];
    }
}

// Encodes one pixel that ends with alpha. The other bands are premultiplied by alpha.
static inline void encode_alpha(uint8_t *pixel, quad light, int bands, const uint8_t *byte_of_root) {
    const float alpha = light[bands - 1];
    const quad_int roots = roots_of(light * (alpha > 1e-6f ? 1 / alpha : 0));
    for (int band = 0; band < bands - 1; band++) pixel[band] = byte_of_root[roots[band]];
    pixel[bands - 1] = alpha <= 0 ? 0 : alpha >= 1 ? 255 : (uint8_t)(alpha * 255 + 0.5f);
}

// Returns the number of taps that fit in LANES.
static inline int group_of(int bands) { return LANES / bands; }

// Repeats each weight of a group once per band.
static inline void spread(octet *lanes, const float *weights, int bands) {
    typedef float pair __attribute__((vector_size(8)));
    pair two;
    quad four;
    switch (bands) {
    case 1: memcpy(lanes, weights, sizeof *lanes); break;
    case 2:
        memcpy(&four, weights, sizeof four);
        *lanes = __builtin_shufflevector(four, four, 0, 0, 1, 1, 2, 2, 3, 3);
        break;
    case 3:
        memcpy(&two, weights, sizeof two);
        *lanes = __builtin_shufflevector(two, two, 0, 0, 0, 1, 1, 1, 1, 1);
        break;
    default:
        memcpy(&two, weights, sizeof two);
        *lanes = __builtin_shufflevector(two, two, 0, 0, 0, 0, 1, 1, 1, 1);
    }
}

// Sums each band over the taps of a group. With three bands, the last two lanes are unused.
static inline quad folded(const octet *lanes, int bands) {
    const quad low = __builtin_shufflevector(*lanes, *lanes, 0, 1, 2, 3);
    const quad high = __builtin_shufflevector(*lanes, *lanes, 4, 5, 6, 7);
    const quad both = low + high;
    switch (bands) {
    case 1: return (quad){both[0] + both[1] + both[2] + both[3], 0, 0, 0};
    case 2: return both + __builtin_shufflevector(both, both, 2, 3, 0, 1);
    case 3: return low + __builtin_shufflevector(*lanes, *lanes, 3, 4, 5, 6);
    default: return both;
    }
}

__attribute__((always_inline)) static inline void filter_bands(
    uint8_t *restrict out, const float *restrict sum, const cresample *s, int bands) {
    const int group = group_of(bands), step = group * bands;
    for (int x = 0; x < s->out_width; x++) {
        const float *restrict weights = s->horizontal.weights + (size_t)x * (size_t)s->horizontal.taps;
        const float *restrict from = sum + (size_t)s->horizontal.start[x] * (size_t)bands;
        octet even = {0}, odd = {0};
        for (int i = 0; i < s->reach; i += 2 * group) {
            octet first, second, first_weights, second_weights;
            memcpy(&first, from, sizeof first);
            memcpy(&second, from + step, sizeof second);
            spread(&first_weights, weights, bands);
            spread(&second_weights, weights + group, bands);
            even += first * first_weights;
            odd += second * second_weights;
            from += 2 * step;
            weights += 2 * group;
        }
        const octet lanes = even + odd;
        const quad light = folded(&lanes, bands);
        if (bands == 2 || bands == 4)
            encode_alpha(out + (size_t)x * (size_t)bands, light, bands, s->byte_of_root);
        else
            memcpy(s->filtered + (size_t)x * (size_t)bands, &light, sizeof light);
    }
    if (bands == 1 || bands == 3) encode(out, s->filtered, (size_t)s->out_width * (size_t)bands, s->byte_of_root);
}

WIDE static void filter_row(uint8_t *restrict out, const float *restrict sum, const cresample *s) {
    switch (s->bands) {
    case 1: return filter_bands(out, sum, s, 1);
    case 2: return filter_bands(out, sum, s, 2);
    case 3: return filter_bands(out, sum, s, 3);
    default: return filter_bands(out, sum, s, 4);
    }
}

// Makes all sets of horizontal weights equally long. A set that would extend beyond the end of the row starts earlier.
static void align(cresample *s) {
    kernel *k = &s->horizontal;
    const int unit = 2 * group_of(s->bands);
    for (int x = 0; x < s->out_width; x++) if (k->count[x] > s->reach) s->reach = k->count[x];
    s->reach = (s->reach + unit - 1) / unit * unit;
    const int last = s->width > s->reach ? s->width - s->reach : 0;
    for (int x = 0; x < s->out_width; x++) {
        const int shift = k->start[x] - last;
        if (shift <= 0) continue;
        float *weights = k->weights + (size_t)x * (size_t)k->taps;
        memmove(weights + shift, weights, (size_t)k->count[x] * sizeof *weights);
        memset(weights, 0, (size_t)shift * sizeof *weights);
        k->start[x] = last;
        k->count[x] += shift;
    }
}

// Adds `count` rows, starting at row `s->seen`, to all sums that they contribute to, and finishes complete sums.
static void add_batch(cresample *s, const uint8_t *const rows[BATCH], int count) {
    const kernel *k = &s->vertical;
    const int first = s->seen, end = s->seen + count;
    const int fresh = s->begun;
    while (s->begun < s->out_height && k->start[s->begun] < end) s->begun++;
    float weights[SLOTS][BATCH] = {{0}};
    for (int y = s->finished; y < s->begun; y++)
        for (int i = 0; i < count; i++) {
            const int at = first + i - k->start[y];
            if (at >= 0 && at < k->count[y]) weights[y % SLOTS][i] = k->weights[(size_t)y * k->taps + at];
        }
    const size_t step = CHUNK / (size_t)s->bands * (size_t)s->bands;
    const size_t alpha_bands = s->bands == 2 || s->bands == 4 ? (size_t)s->bands : 0;
    for (size_t left = 0; left < s->samples; left += step) {
        const size_t length = s->samples - left < step ? s->samples - left : step;
        for (int i = 0; i < count; i++) {
            float *const light = s->light + (size_t)i * CHUNK;
            if (s->is_wide)
                linearise_wide(light, (const uint16_t *)rows[i] + left, length, s->share, s->curve, alpha_bands);
            else
                linearise_bytes(light, rows[i] + left, length, s->share, s->curve, alpha_bands);
        }
        float *const sums = s->sums + left;
        int y = s->finished;
        for (; y + 1 < fresh; y += 2) {
            const size_t one = (size_t)(y % SLOTS), two = (size_t)((y + 1) % SLOTS);
            add_to_two(sums + one * s->row, sums + two * s->row, s->light, weights[one], weights[two], length);
        }
        for (; y < s->begun; y++)
            (y < fresh ? add : begin)(
                sums + (size_t)(y % SLOTS) * s->row, s->light, weights[y % SLOTS], length);
    }
    s->seen = end;
    while (s->finished < s->begun && k->start[s->finished] + k->count[s->finished] <= end) {
        filter_row(
            s->out + (size_t)s->finished * (size_t)s->out_width * (size_t)s->bands,
            s->sums + (size_t)(s->finished % SLOTS) * s->row, s);
        s->finished++;
    }
}

cresample *cresample_new(
    int width, int height, double across, double down, int bands, int steps, double linear, int out_width,
    int out_height, uint8_t *out) {
    if (steps < 1 || steps > 257 || (steps > 1 && steps < 257 && bands != 1 && bands != 3)) return NULL;
    if (bands < 1 || bands > 4 || out_width < 1 || out_height < 1 || !out || !(linear >= 0 && linear <= 1)) return NULL;
    if (!(across >= out_width && across <= width && down >= out_height && down <= height)) return NULL;
    cresample *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->width = width;
    s->height = height;
    s->bands = bands;
    s->out_width = out_width;
    s->out_height = out_height;
    s->out = out;
    s->samples = (size_t)width * (size_t)bands;
    s->is_wide = steps > 1;
    s->row_bytes = s->samples * (s->is_wide ? sizeof(uint16_t) : 1);
    s->share = 1 / (float)steps;
    curve_init(s, linear);
    // The memory must be zeroed, because an incomplete last batch adds the unused rows with weight 0, and 0 times an
    // uninitialized NaN would be NaN.
    s->light = calloc(BATCH * CHUNK, sizeof(float));
    s->pending = malloc((BATCH - 1) * s->row_bytes);
    if (!s->light || !s->pending || !kernel_init(&s->horizontal, across, out_width, 2 * group_of(bands))
        || !kernel_init(&s->vertical, down, out_height, 1)) {
        cresample_free(s);
        return NULL;
    }
    align(s);
    s->row = (size_t)(width > s->reach ? width : s->reach) * (size_t)bands + SLACK;
    s->sums = calloc(SLOTS * s->row, sizeof(float));
    s->filtered = malloc(((size_t)out_width * (size_t)bands + 4) * sizeof(float));
    if (!s->sums || !s->filtered) {
        cresample_free(s);
        return NULL;
    }
    return s;
}

void cresample_push(cresample *s, const void *rows, int count) {
    const int left = s->height - s->seen - s->pending_count;
    if (count > left) count = left;
    int used = 0;
    while (used < count) {
        const uint8_t *batch[BATCH];
        int have = 0;
        for (; have < s->pending_count; have++) batch[have] = s->pending + (size_t)have * s->row_bytes;
        while (have < BATCH && used < count) batch[have++] = (const uint8_t *)rows + (size_t)(used++) * s->row_bytes;
        if (have == BATCH || s->seen + have == s->height) {
            s->pending_count = 0;
            add_batch(s, batch, have);
        } else {
            for (int i = s->pending_count; i < have; i++)
                memcpy(s->pending + (size_t)i * s->row_bytes, batch[i], s->row_bytes);
            s->pending_count = have;
        }
    }
}

void cresample_free(cresample *s) {
    if (!s) return;
    kernel_free(&s->horizontal);
    kernel_free(&s->vertical);
    free(s->sums);
    free(s->filtered);
    free(s->light);
    free(s->pending);
    free(s);
}
