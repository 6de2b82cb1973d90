#include "CResample.h"
#include "Wide.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// SSIMULACRA2 compares two pictures at up to six scales. At each scale, pixels are converted to XYB, and three errors
// are derived from Gaussian means and variances: the structural difference, added edges and lost edges. The score
// depends on a weighted sum of the mean and the 4-norm of each error. Constants and definition:
// https://github.com/cloudinary/ssimulacra2 (src/ssimulacra2.cc), version 2.1.
//
// Each scale stores only the rows that the filter covers. Every row is also reduced for the next scale. The variance of
// the difference replaces the covariance. This is equivalent, and exact for equal pictures.
//
// Implementations treat the edges of a picture differently. Here, rows are mirrored at the top and bottom, and columns
// beyond the left and right edges are 0, as in PyPI ssimulacra2 0.3. libjxl uses 0 beyond all four edges, which changes
// the scores of small pictures by several points.

enum {
    SCALES = 6,
    CHANNELS = 3,
    // The number of planes of both pictures.
    PLANES = 2 * CHANNELS,
    // The number of rows or columns on each side that the filter covers.
    RADIUS = 5,
    TAPS = 2 * RADIUS + 1,
    // The smallest edge of a scale.
    LEAST = 8,
    // The means of the original, the difference, the squares of both pictures, and the squared difference.
    FILTERED = 4,
    // The number of floats that are processed at once.
    LANES = 8,
    // The structural difference, added edges and lost edges.
    ERRORS = 3,
};

typedef float octet __attribute__((vector_size(32), aligned(4)));

typedef struct {
    int width, height;
    // The numbers of rows that have been pushed and compared.
    int pushed, made;
    // The number of floats per plane of a row, including 9 to 16 unused floats at the end.
    size_t row;
    // TAPS rows of PLANES planes in XYB. Row y is at y % TAPS.
    float *ring;
    // A row of PLANES planes in linear light.
    float *linear;
    // The sums of the errors and of their fourth powers.
    double sums[CHANNELS][2][ERRORS];
} scale;

struct cscore {
    int width, height, bands, background, rows, count;
    scale scales[SCALES];
    float light[256];
    // The weights of the filter by distance.
    float taps[RADIUS + 1];
    // FILTERED rows that have been filtered vertically, with zeros before and after each row.
    float *filtered;
};

static const double weights[CHANNELS * SCALES * 2 * ERRORS] = {
    0, 0.0007376606707406586, 0, 0, 0.0007793481682867309, 0,
    0, 0.0004371155730107379, 0, 1.1041726426657346, 0.00066284834129271, 0.00015231632783718752,
    0, 0.0016406437456599754, 0, 1.8422455520539298, 11.441172603757666, 0,
    0.0007989109436015163, 0.000176816438078653, 0, 1.8787594979546387, 10.94906990605142, 0,
    0.0007289346991508072, 0.9677937080626833, 0, 0.00014003424285435884, 0.9981766977854967, 0.00031949755934435053,
    0.0004550992113792063, 0, 0, 0.0013648766163243398, 0, 0,
    0, 0, 0, 7.466890328078848, 0, 17.445833984131262,
    0.0006235601634041466, 0, 0, 6.683678146179332, 0.00037724407979611296, 1.027889937768264,
    225.20515300849274, 0, 0, 19.213238186143016, 0.0011401524586618361, 0.001237755635509985,
    176.39317598450694, 0, 0, 24.43300999870476, 0.28520802612117757, 0.0004485436923833408,
    0, 0, 0, 34.77906344483772, 44.835625328877896, 0,
    0, 0, 0, 0, 0, 0,
    0, 0.0008680556573291698, 0, 0, 0, 0,
    0, 0.0005313191874358747, 0, 0.00016533814161379112, 0, 0,
    0, 0, 0, 0.0004179171803251336, 0.0017290828234722833, 0,
    0.0020827005846636437, 0, 0, 8.826982764996862, 23.19243343998926, 0,
    95.1080498811086, 0.9863978034400682, 0.9834382792465353, 0.0012286405048278493, 171.2667255897307, 0.9807858872435379,
    0, 0, 0, 0.0005130064588990679, 0, 0.00010854057858411537,
};

// The cube root of a number from 0.003 to 2, to the precision of a float: an estimate from the bits of the inverse
// cube root, and three steps of Newton's method.
static inline float cube_root(float x) {
    union { float value; int bits; } guess = {.value = x};
    guess.bits = 0x54a21d2a - (int)((float)guess.bits * (1.0f / 3));
    float y = guess.value;
    for (int step = 0; step < 3; step++) y *= 4.0f / 3 - x / 3 * y * y * y;
    return x * y * y;
}

// Converts a row of one picture from linear light to XYB, shifted so that all values are positive.
WIDE static void to_xyb(const float *restrict linear, float *restrict xyb, size_t row, int width) {
    const float *const red = linear, *const green = linear + row, *const blue = linear + 2 * row;
    const float bias = 0.0037930732552754493f, root = 0.15595420054924863f;
    for (int x = 0; x < width; x++) {
        const float r = red[x], g = green[x], b = blue[x];
        const float l = cube_root(0.30f * r + 0.622f * g + 0.078f * b + bias) - root;
        const float m = cube_root(0.23f * r + 0.692f * g + 0.078f * b + bias) - root;
        const float s =
            cube_root(0.24342268924547819f * r + 0.20476744424496821f * g + 0.55180986650955360f * b + bias) - root;
        const float luma = 0.5f * (l + m);
        xyb[x] = 7 * (l - m) + 0.42f;
        xyb[row + (size_t)x] = luma + 0.01f;
        xyb[2 * row + (size_t)x] = s - luma + 0.55f;
    }
}

// Adds a quarter of each pair of values.
WIDE static void halve(const float *restrict from, float *restrict to, int width) {
    for (int x = 0; x < width; x++) to[x] += 0.25f * (from[2 * x] + from[2 * x + 1]);
}

// Filters rows of one channel vertically. `rows` contains TAPS rows of the original, and then TAPS rows of the copy.
WIDE static void filter_down(const float *const *rows, const float *taps, float *restrict out, size_t row, int width) {
    for (int x = 0; x < width; x += LANES) {
        octet mean = {0}, difference = {0}, squares = {0}, differences = {0};
        for (int tap = 0; tap < TAPS; tap++) {
            const float weight = taps[tap < RADIUS ? RADIUS - tap : tap - RADIUS];
            const octet a = *(const octet *)(rows[tap] + x), b = *(const octet *)(rows[TAPS + tap] + x), d = b - a;
            mean += weight * a;
            difference += weight * d;
            squares += weight * (a * a + b * b);
            differences += weight * (d * d);
        }
        *(octet *)(out + x) = mean;
        *(octet *)(out + row + x) = difference;
        *(octet *)(out + 2 * row + x) = squares;
        *(octet *)(out + 3 * row + x) = differences;
    }
}

// Filters rows horizontally, and adds up the errors of all pixels and their fourth powers.
WIDE static void compare(
    const float *restrict filtered, size_t row, const float *taps, const float *restrict original,
    const float *restrict copy, int width, double (*sums)[ERRORS]) {
    octet totals[2][ERRORS] = {{{0}}};
    for (int x = 0; x < width; x += LANES) {
        octet smooth[FILTERED];
        for (int plane = 0; plane < FILTERED; plane++) {
            const float *const center = filtered + (size_t)plane * row + x;
            smooth[plane] = taps[0] * *(const octet *)center;
            for (int tap = 1; tap <= RADIUS; tap++) {
                smooth[plane] += taps[tap] * (*(const octet *)(center - tap) + *(const octet *)(center + tap));
            }
        }
        const octet mean = smooth[0], difference = smooth[1], other = mean + difference;
        const octet variance = smooth[3] - difference * difference;
        const octet all = smooth[2] - mean * mean - other * other + 0.0009f;
        const octet added = __builtin_elementwise_abs(*(const octet *)(copy + x) - other);
        const octet known = __builtin_elementwise_abs(*(const octet *)(original + x) - mean);
        const octet edge = (1 + added) / (1 + known) - 1, zero = {0};
        octet errors[ERRORS] = {1 - (1 - difference * difference) * (1 - variance / all), edge, -edge};
        for (int error = 0; error < ERRORS; error++) {
            octet value = __builtin_elementwise_max(errors[error], zero);
            for (int lane = width - x; lane < LANES; lane++) value[lane] = 0;
            const octet square = value * value;
            totals[0][error] += value;
            totals[1][error] += square * square;
        }
    }
    for (int norm = 0; norm < 2; norm++) {
        for (int error = 0; error < ERRORS; error++) {
            for (int lane = 0; lane < LANES; lane++) sums[norm][error] += (double)totals[norm][error][lane];
        }
    }
}

// Compares the next row of a scale.
static void make_row(cscore *state, scale *at) {
    const size_t row = state->scales[0].row;
    for (size_t channel = 0; channel < CHANNELS; channel++) {
        const float *rows[2 * TAPS];
        for (int tap = 0; tap < TAPS; tap++) {
            int y = at->made + tap - RADIUS;
            if (y < 0) y = -1 - y;
            if (y >= at->height) y = 2 * at->height - 1 - y;
            rows[tap] = at->ring + ((size_t)(y % TAPS) * PLANES + channel) * at->row;
            rows[TAPS + tap] = rows[tap] + CHANNELS * at->row;
        }
        float *const filtered = state->filtered + LANES;
        filter_down(rows, state->taps, filtered, row, at->width);
        for (size_t plane = 0; plane < FILTERED; plane++) {
            memset(filtered + plane * row + at->width, 0, RADIUS * sizeof(float));
        }
        compare(filtered, row, state->taps, rows[RADIUS], rows[TAPS + RADIUS], at->width, at->sums[channel]);
    }
    at->made++;
}

// Processes the row in `linear` of a scale, and the rows of smaller scales that it completes.
static void push_row(cscore *state, int index) {
    scale *const at = &state->scales[index];
    float *const xyb = at->ring + (size_t)(at->pushed % TAPS) * PLANES * at->row;
    to_xyb(at->linear, xyb, at->row, at->width);
    to_xyb(at->linear + CHANNELS * at->row, xyb + CHANNELS * at->row, at->row, at->width);
    at->pushed++;
    if (index + 1 < state->count) {
        scale *const next = &state->scales[index + 1];
        const int is_first = at->pushed % 2, is_last = at->pushed == at->height;
        if (is_first) memset(next->linear, 0, PLANES * next->row * sizeof(float));
        for (size_t plane = 0; plane < PLANES; plane++) {
            float *const from = at->linear + plane * at->row;
            from[at->width] = from[at->width - 1];
            // The last row counts twice if it is not part of a pair.
            for (int times = is_first && is_last ? 2 : 1; times > 0; times--) {
                halve(from, next->linear + plane * next->row, next->width);
            }
        }
        if (!is_first || is_last) push_row(state, index + 1);
    }
    while (at->made < at->height && (at->made + RADIUS < at->pushed || at->pushed == at->height)) make_row(state, at);
}

// Converts a row of bytes to linear light.
static void to_linear(const cscore *state, const uint8_t *from, float *to) {
    const scale *const at = &state->scales[0];
    const int bands = state->bands, colors = bands < 3 ? 1 : 3;
    for (int x = 0; x < at->width; x++) {
        const uint8_t *const pixel = from + (x < state->width ? x : state->width - 1) * bands;
        for (int channel = 0; channel < CHANNELS; channel++) {
            int value = pixel[channel % colors];
            if (colors < bands) {
                const int alpha = pixel[colors];
                value = (value * alpha + state->background * (255 - alpha) + 127) / 255;
            }
            to[(size_t)channel * at->row + (size_t)x] = state->light[value];
        }
    }
}

cscore *cscore_new(int width, int height, int bands, int background) {
    const int most = 1 << 24;
    if (width < 1 || width > most || height < 1 || height > most || bands < 1 || bands > 4) return NULL;
    if (background < 0 || background > 255) return NULL;
    cscore *const state = calloc(1, sizeof(cscore));
    if (!state) return NULL;
    state->width = width;
    state->height = height;
    state->bands = bands;
    state->background = background;
    int across = width < LEAST ? LEAST : width, down = height < LEAST ? LEAST : height;
    int is_complete = 1;
    for (; state->count < SCALES && across >= LEAST && down >= LEAST; state->count++) {
        scale *const at = &state->scales[state->count];
        at->width = across;
        at->height = down;
        at->row = (size_t)(across / LANES + 2) * LANES;
        at->ring = calloc(TAPS * PLANES * at->row, sizeof(float));
        at->linear = calloc(PLANES * at->row, sizeof(float));
        is_complete &= at->ring && at->linear;
        across = (across + 1) / 2;
        down = (down + 1) / 2;
    }
    state->filtered = calloc(FILTERED * state->scales[0].row + 2 * LANES, sizeof(float));
    if (!is_complete || !state->filtered) {
        cscore_free(state);
        return NULL;
    }
    for (int value = 0; value < 256; value++) {
        const double stored = value / 255.0;
        state->light[value] = (float)(stored <= 0.04045 ? stored / 12.92 : pow((stored + 0.055) / 1.055, 2.4));
    }
    double taps[RADIUS + 1], sum = 0;
    for (int tap = 0; tap <= RADIUS; tap++) {
        taps[tap] = exp(-tap * tap / (2 * 1.5 * 1.5));
        sum += tap > 0 ? 2 * taps[tap] : taps[tap];
    }
    for (int tap = 0; tap <= RADIUS; tap++) state->taps[tap] = (float)(taps[tap] / sum);
    return state;
}

void cscore_push(cscore *state, const uint8_t *original, const uint8_t *copy, int count) {
    scale *const first = &state->scales[0];
    const size_t length = (size_t)state->width * (size_t)state->bands;
    for (int y = 0; y < count && state->rows < state->height; y++) {
        state->rows++;
        // Repeat the last row if the picture has fewer than LEAST rows.
        for (int times = state->rows == state->height ? first->height - state->height + 1 : 1; times > 0; times--) {
            to_linear(state, original + (size_t)y * length, first->linear);
            to_linear(state, copy + (size_t)y * length, first->linear + CHANNELS * first->row);
            push_row(state, 0);
        }
    }
}

double cscore_result(cscore *state) {
    double sum = 0;
    int index = 0;
    // A small picture has fewer scales, and then uses the first weights, as in the reference implementation.
    for (int channel = 0; channel < CHANNELS; channel++) {
        for (int level = 0; level < state->count; level++) {
            const scale *const at = &state->scales[level];
            const double pixels = (double)at->width * at->height;
            for (int norm = 0; norm < 2; norm++) {
                for (int error = 0; error < ERRORS; error++) {
                    const double mean = at->sums[channel][norm][error] / pixels;
                    sum += weights[index++] * (norm == 0 ? mean : pow(mean, 0.25));
                }
            }
        }
    }
    sum *= 0.9562382616834844;
    sum = 2.326765642916932 * sum - 0.020884521182843837 * sum * sum + 6.248496625763138e-05 * sum * sum * sum;
    return sum > 0 ? 100 - 10 * pow(sum, 0.6276336467831387) : 100;
}

void cscore_free(cscore *state) {
    if (!state) return;
    for (int level = 0; level < SCALES; level++) {
        free(state->scales[level].ring);
        free(state->scales[level].linear);
    }
    free(state->filtered);
    free(state);
}
