#include "CResample.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// Vertically first: each row is added, weighted, to the sums of the six or so output rows it takes part in, so that no
// source row has to be kept. A complete sum is filtered horizontally, encoded and written.

// The functions that all the time goes into are compiled for wider vectors too; the loader picks (x86-64-v3 has AVX2 and
// fused multiply-add).
#if defined(__x86_64__) && defined(__linux__)
#define WIDE __attribute__((target_clones("default", "arch=x86-64-v3")))
#else
#define WIDE
#endif

enum {
    // Lanczos 3.
    LOBES = 3,
    // Source rows added at once, so that sums are loaded and stored less often.
    BATCH = 4,
    // Output rows that a batch may take part in: 2 * LOBES + 1 of one row, and at most one more for each further row.
    SLOTS = 16,
    // Floats of a row worked on at once: a batch of them stays in the first-level cache.
    CHUNK = 768,
    // Entries of the table from the square root of linear light to bytes: a step is at most a tenth of a byte's.
    ROOTS = 4096,
};

// Pixels are loaded four floats at a time, whatever the bands: rows have room for the last one.
enum { SLACK = 4 };
typedef float quad __attribute__((vector_size(16)));

typedef struct {
    // For each output sample: the first source sample, and how many weights.
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
    // Source rows seen, output rows complete, output rows begun.
    int seen, finished, begun;
    // Floats of a row.
    size_t samples;
    // SLOTS rows of sums; output row y has slot y % SLOTS.
    float *sums;
    // BATCH chunks of source rows as floats.
    float *light;
    // Rows of a batch that is not full yet, as they came.
    uint8_t *pending;
    int pending_count;
};

static double lanczos(double x) {
    x = fabs(x);
    if (x < 1e-9) return 1;
    if (x >= LOBES) return 0;
    const double p = M_PI * x;
    return LOBES * sin(p) * sin(p / LOBES) / (p * p);
}

// Weights for reducing `from` samples to `to`, centres aligned, each set summing to 1.
static int kernel_init(kernel *k, int from, int to) {
    const double scale = (double)from / to;
    k->taps = (int)ceil(2 * LOBES * scale) + 2;
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
        const int last = highest > from - 1 ? from - 1 : highest;
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

// The curve of sRGB above its straight part, as a polynomial: at the 256 values of a byte it is at most 0.004 bytes off.
static inline float light_of(uint8_t byte) {
    const float v = byte * (1.0f / 255.0f);
    float p = -0.08540543790491907f;
    p = p * v + 0.31677613287675227f;
    p = p * v - 0.533823316679219f;
    p = p * v + 0.7680795068357933f;
    p = p * v + 0.49906831240128535f;
    p = p * v + 0.03440019008779249f;
    p = p * v + 0.0008751361385076945f;
    const float straight = v * (1.0f / 12.92f);
    return v <= 0.04045f ? straight : p;
}

WIDE static void linearise(float *restrict light, const uint8_t *restrict bytes, size_t count) {
    for (size_t i = 0; i < count; i++) light[i] = light_of(bytes[i]);
}

// The same for pixels that end in alpha, which is linear already and multiplies the others.
static void linearise_alpha(float *restrict light, const uint8_t *restrict bytes, size_t count, int bands) {
    for (size_t i = 0; i < count; i += (size_t)bands) {
        const float alpha = bytes[i + (size_t)bands - 1] * (1.0f / 255.0f);
        for (int band = 0; band < bands - 1; band++) light[i + (size_t)band] = light_of(bytes[i + (size_t)band]) * alpha;
        light[i + (size_t)bands - 1] = alpha;
    }
}

WIDE static void add(float *restrict sum, const float *restrict light, const float *restrict weights, size_t count) {
    const float a = weights[0], b = weights[1], c = weights[2], d = weights[3];
    const float *restrict rows[BATCH] = {light, light + CHUNK, light + 2 * CHUNK, light + 3 * CHUNK};
    for (size_t i = 0; i < count; i++)
        sum[i] += a * rows[0][i] + b * rows[1][i] + c * rows[2][i] + d * rows[3][i];
}

static inline uint8_t byte_of(float light) {
    if (!(light > 0)) return 0;
    if (light >= 1) return 255;
    return byte_of_root[(int)(sqrtf(light) * (ROOTS - 1) + 0.5f)];
}

static inline void encode(uint8_t *pixel, quad light, int bands) {
    if (bands == 1 || bands == 3) {
        for (int band = 0; band < bands; band++) pixel[band] = byte_of(light[band]);
        return;
    }
    const float alpha = light[bands - 1];
    const float inverse = alpha > 1e-6f ? 1 / alpha : 0;
    for (int band = 0; band < bands - 1; band++) pixel[band] = byte_of(light[band] * inverse);
    pixel[bands - 1] = alpha <= 0 ? 0 : alpha >= 1 ? 255 : (uint8_t)(alpha * 255 + 0.5f);
}

WIDE static void filter_row(uint8_t *restrict out, const float *restrict sum, const kernel *k, int width, int bands) {
    for (int x = 0; x < width; x++) {
        const float *restrict weights = k->weights + (size_t)x * k->taps;
        const float *restrict from = sum + (size_t)k->start[x] * bands;
        const int count = k->count[x];
        quad even = {0}, odd = {0};
        int i = 0;
        for (; i + 1 < count; i += 2) {
            quad first, second;
            memcpy(&first, from, sizeof first);
            memcpy(&second, from + bands, sizeof second);
            even += first * weights[i];
            odd += second * weights[i + 1];
            from += 2 * bands;
        }
        if (i < count) {
            quad last;
            memcpy(&last, from, sizeof last);
            even += last * weights[i];
        }
        encode(out + (size_t)x * bands, even + odd, bands);
    }
}

// Adds rows `state->seen …` + `count` to all sums they take part in, and finishes those that are complete.
static void add_batch(cresample *s, const uint8_t *const rows[BATCH], int count) {
    const kernel *k = &s->vertical;
    const int first = s->seen, end = s->seen + count;
    while (s->begun < s->out_height && k->start[s->begun] < end) {
        memset(s->sums + (size_t)(s->begun % SLOTS) * (s->samples + SLACK), 0, (s->samples + SLACK) * sizeof(float));
        s->begun++;
    }
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
            if (has_alpha)
                linearise_alpha(s->light + (size_t)i * CHUNK, rows[i] + left, length, s->bands);
            else
                linearise(s->light + (size_t)i * CHUNK, rows[i] + left, length);
        }
        for (int y = s->finished; y < s->begun; y++)
            add(s->sums + (size_t)(y % SLOTS) * (s->samples + SLACK) + left, s->light, weights[y % SLOTS], length);
    }
    s->seen = end;
    while (s->finished < s->begun && k->start[s->finished] + k->count[s->finished] <= end) {
        const float *sum = s->sums + (size_t)(s->finished % SLOTS) * (s->samples + SLACK);
        filter_row(
            s->out + (size_t)s->finished * (size_t)s->out_width * (size_t)s->bands, sum, &s->horizontal, s->out_width,
            s->bands);
        s->finished++;
    }
}

cresample *cresample_new(int width, int height, int bands, int out_width, int out_height, uint8_t *out) {
    if (bands < 1 || bands > 4 || out_width < 1 || out_height < 1 || out_width > width || out_height > height || !out)
        return NULL;
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
    s->sums = malloc(SLOTS * (s->samples + SLACK) * sizeof(float));
    // Zeroes: a last batch that is not full adds the rest with weight 0, and 0 times a stray NaN would be one.
    s->light = calloc(BATCH * CHUNK, sizeof(float));
    s->pending = malloc((BATCH - 1) * s->samples);
    if (!s->sums || !s->light || !s->pending || !kernel_init(&s->horizontal, width, out_width)
        || !kernel_init(&s->vertical, height, out_height)) {
        cresample_free(s);
        return NULL;
    }
    return s;
}

void cresample_push(cresample *s, const uint8_t *rows, size_t stride, int count) {
    const int left = s->height - s->seen - s->pending_count;
    if (count > left) count = left;
    int used = 0;
    while (used < count) {
        const uint8_t *batch[BATCH];
        int have = 0;
        for (; have < s->pending_count; have++) batch[have] = s->pending + (size_t)have * s->samples;
        while (have < BATCH && used < count) batch[have++] = rows + (size_t)(used++) * stride;
        if (have == BATCH || s->seen + have == s->height) {
            s->pending_count = 0;
            add_batch(s, batch, have);
        } else {
            for (int i = s->pending_count; i < have; i++) memcpy(s->pending + (size_t)i * s->samples, batch[i], s->samples);
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
    free(s->light);
    free(s->pending);
    free(s);
}
