#include "CResample.h"
#include "Wide.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Filters vertically first: each source row is weighted and added to the sums of the six or so output rows that it
// contributes to, so that no source row has to be kept. A complete sum is filtered horizontally, encoded and written.

enum {
    // Lanczos 3.
    LOBES = 3,
    // Source rows added at once, so that sums are loaded and stored less often.
    BATCH = 4,
    // Output rows a batch may contribute to: 2 * LOBES + 1 for one row, and at most one more for each further row.
    SLOTS = 16,
    // Floats of a row processed at once: a batch of them stays in the first-level cache.
    CHUNK = 768,
    // Entries of the table from the square root of linear light to bytes: a step is at most a tenth of a byte step.
    ROOTS = 4096,
};

// Sums are loaded eight floats at a time, whatever the number of bands, so rows are padded with zeroes.
enum { LANES = 8, SLACK = LANES };
typedef float quad __attribute__((vector_size(16)));
typedef float octet __attribute__((vector_size(32)));
typedef int quad_int __attribute__((vector_size(16)));

typedef struct {
    // For each output sample: the first source sample, and the number of weights.
    int *start;
    int *count;
    // `taps` weights for each output sample.
    float *weights;
    int taps;
} kernel;

struct cresample {
    int width, height, bands, out_width, out_height;
    uint8_t *out;
    kernel horizontal, vertical;
    // Horizontal taps that are computed, the same number for each output sample; the last ones may have weight 0.
    int reach;
    // Source rows seen, output rows complete, output rows begun.
    int seen, finished, begun;
    // Samples per source row, and floats per row of sums, which is padded with zeroes.
    size_t samples, row;
    // SLOTS rows of sums; output row y has slot y % SLOTS.
    float *sums;
    // An output row in linear light, with room for a last pixel stored as four floats.
    float *filtered;
    // BATCH chunks of source rows as floats.
    float *light;
    // Rows of an incomplete batch, in their input format.
    uint8_t *pending;
    int pending_count;
    // Bytes per input row; whether its samples are 16-bit sums rather than bytes; the factor that scales sums to bytes.
    size_t row_bytes;
    int has_sums;
    float share;
};

static double lanczos(double x) {
    x = fabs(x);
    if (x < 1e-9) return 1;
    if (x >= LOBES) return 0;
    // sin 3a = 3 sin a - 4 sin³ a; LOBES is 3.
    const double p = M_PI * x, s = sin(p / LOBES);
    return LOBES * (3 - 4 * s * s) * s * s / (p * p);
}

// Computes weights for reducing `from` samples to `to`, with centres aligned and each set summing to 1. Room per set is
// a multiple of `unit`. Returns 0 if memory is short.
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
        const double centre = (i + 0.5) * scale - 0.5;
        const int lowest = (int)floor(centre - LOBES * scale) + 1;
        const int highest = (int)ceil(centre + LOBES * scale) - 1;
        const int first = lowest < 0 ? 0 : lowest;
        const int last = highest > most ? most : highest;
        memset(set, 0, (size_t)k->taps * sizeof *set);
        double sum = 0;
        for (int at = lowest; at <= highest; at++) {
            const double weight = lanczos((at - centre) / scale);
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

static double encoded(double light) {
    return light <= 0.0031308 ? light * 12.92 : 1.055 * pow(light, 1 / 2.4) - 0.055;
}

static uint8_t byte_of_root[ROOTS];
static pthread_once_t tables_made = PTHREAD_ONCE_INIT;

static void make_tables(void) {
    for (int i = 0; i < ROOTS; i++) {
        const double root = (double)i / (ROOTS - 1);
        byte_of_root[i] = (uint8_t)lround(255 * encoded(root * root));
    }
}

// The sRGB curve, its curved part as a polynomial: at the 256 byte values it is off by at most 0.012 byte steps.
static inline float light_of(float v) {
    float p = 7.938346025448614e-14f;
    p = p * v - 7.173046878694578e-11f;
    p = p * v + 4.0026304048979e-08f;
    p = p * v + 8.006471034605056e-06f;
    p = p * v + 0.00012773051275871694f;
    p = p * v + 0.0009242446976713836f;
    const float straight = v * (1.0f / (255 * 12.92f));
    return v <= 10 ? straight : p;
}

WIDE static void linearise(float *restrict light, const uint8_t *restrict bytes, size_t count) {
    for (size_t i = 0; i < count; i++) light[i] = light_of(bytes[i]);
}

// Like `linearise`, for sums of bytes; `share` is 1 over the number of bytes in a sum.
WIDE static void linearise_sums(float *restrict light, const uint16_t *restrict sums, size_t count, float share) {
    for (size_t i = 0; i < count; i++) light[i] = light_of((float)sums[i] * share);
}

// Like `linearise`, for pixels that end in alpha, which is already linear and multiplies the other bands.
WIDE static void linearise_alpha(
    float *restrict light, const uint8_t *restrict bytes, size_t count, size_t bands) {
    linearise(light, bytes, count);
    for (size_t i = 0; i < count; i += bands) {
        const float alpha = bytes[i + bands - 1] * (1.0f / 255.0f);
        for (size_t band = 0; band + 1 < bands; band++) light[i + band] *= alpha;
        light[i + bands - 1] = alpha;
    }
}

WIDE static void add(float *restrict sum, const float *restrict light, const float *restrict weights, size_t count) {
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++)
        sum[i] = sum[i] + a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
}

// Like `add`, for the sums of two output rows, so that light is loaded only once.
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

// Like `add`, for sums to which nothing has been added yet.
WIDE static void begin(float *restrict sum, const float *restrict light, const float *restrict weights, size_t count) {
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++)
        sum[i] = a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
}

// Indexes into `byte_of_root`, for one sample and for four.
static inline uint16_t root_of(float light) {
    light = __builtin_elementwise_min(__builtin_elementwise_max(light, 0.0f), 1.0f);
    return (uint16_t)(int)(__builtin_elementwise_sqrt(light) * (ROOTS - 1) + 0.5f);
}

static inline quad_int roots_of(quad light) {
    light = __builtin_elementwise_min(__builtin_elementwise_max(light, (quad){0}), (quad){1, 1, 1, 1});
    return __builtin_convertvector(__builtin_elementwise_sqrt(light) * (ROOTS - 1) + 0.5f, quad_int);
}

// Encodes a filtered row to bytes, in parts, so that everything but the table look-up is vectorised.
static inline void encode(uint8_t *restrict out, const float *restrict light, size_t count) {
    uint16_t roots[CHUNK];
    for (size_t left = 0; left < count; left += CHUNK) {
        const size_t length = count - left < CHUNK ? count - left : CHUNK;
        for (size_t i = 0; i < length; i++) roots[i] = root_of(light[left + i]);
        for (size_t i = 0; i < length; i++) out[left + i] = byte_of_root[roots[i]];
    }
}

// Encodes one pixel that ends in alpha, by which the other bands are multiplied.
static inline void encode_alpha(uint8_t *pixel, quad light, int bands) {
    const float alpha = light[bands - 1];
    const quad_int roots = roots_of(light * (alpha > 1e-6f ? 1 / alpha : 0));
    for (int band = 0; band < bands - 1; band++) pixel[band] = byte_of_root[roots[band]];
    pixel[bands - 1] = alpha <= 0 ? 0 : alpha >= 1 ? 255 : (uint8_t)(alpha * 255 + 0.5f);
}

// The number of taps that fit in LANES.
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

// Sums each band over the taps of a group; with three bands the last two lanes are unused.
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
            encode_alpha(out + (size_t)x * (size_t)bands, light, bands);
        else
            memcpy(s->filtered + (size_t)x * (size_t)bands, &light, sizeof light);
    }
    if (bands == 1 || bands == 3) encode(out, s->filtered, (size_t)s->out_width * (size_t)bands);
}

WIDE static void filter_row(uint8_t *restrict out, const float *restrict sum, const cresample *s) {
    switch (s->bands) {
    case 1: return filter_bands(out, sum, s, 1);
    case 2: return filter_bands(out, sum, s, 2);
    case 3: return filter_bands(out, sum, s, 3);
    default: return filter_bands(out, sum, s, 4);
    }
}

// Makes all sets of horizontal weights equally long. A set that would reach past the end of the row starts earlier.
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

// Adds `count` rows, starting at row `s->seen`, to all sums they contribute to, and finishes those that are complete.
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
    const int has_alpha = s->bands == 2 || s->bands == 4;
    for (size_t left = 0; left < s->samples; left += step) {
        const size_t length = s->samples - left < step ? s->samples - left : step;
        for (int i = 0; i < count; i++) {
            float *const light = s->light + (size_t)i * CHUNK;
            if (s->has_sums)
                linearise_sums(light, (const uint16_t *)rows[i] + left, length, s->share);
            else if (has_alpha)
                linearise_alpha(light, rows[i] + left, length, (size_t)s->bands);
            else
                linearise(light, rows[i] + left, length);
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

cresample *cresample_new(int width, int height, int bands, int out_width, int out_height, uint8_t *out) {
    return cresample_new_part(width, height, width, height, bands, 1, out_width, out_height, out);
}

cresample *cresample_new_part(
    int width, int height, double across, double down, int bands, int summed, int out_width, int out_height,
    uint8_t *out) {
    if (summed < 1 || summed > 256 || (summed > 1 && bands != 1 && bands != 3)) return NULL;
    if (bands < 1 || bands > 4 || out_width < 1 || out_height < 1 || !out) return NULL;
    if (!(across >= out_width && across <= width && down >= out_height && down <= height)) return NULL;
    pthread_once(&tables_made, make_tables);
    cresample *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->width = width;
    s->height = height;
    s->bands = bands;
    s->out_width = out_width;
    s->out_height = out_height;
    s->out = out;
    s->samples = (size_t)width * (size_t)bands;
    s->has_sums = summed > 1;
    s->row_bytes = s->samples * (s->has_sums ? sizeof(uint16_t) : 1);
    s->share = 1 / (float)summed;
    // Zeroed, because an incomplete last batch adds the rest with weight 0, and 0 times a stray NaN would be NaN.
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

int cresample_finished(const cresample *s) { return s->finished; }

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
