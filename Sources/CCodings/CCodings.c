#include "CCodings.h"

#include <brotli/decode.h>
#include <limits.h>
#include <stdlib.h>
#include <zlib.h>

struct ccodings {
    int coding;
    int has_begun;
    z_stream zlib;
    BrotliDecoderState *brotli;
};

ccodings *ccodings_open(int coding) {
    ccodings *state = calloc(1, sizeof *state);
    if (!state) return NULL;
    state->coding = coding;
    if (coding == ccodings_br) {
        state->brotli = BrotliDecoderCreateInstance(NULL, NULL, NULL);
        if (state->brotli) return state;
    } else if (inflateInit2(&state->zlib, coding == ccodings_gzip ? 15 + 16 : 15) == Z_OK) {
        return state;
    }
    free(state);
    return NULL;
}

void ccodings_close(ccodings *state) {
    if (state->brotli) BrotliDecoderDestroyInstance(state->brotli);
    else inflateEnd(&state->zlib);
    free(state);
}

static size_t step_brotli(ccodings *state, const uint8_t **in, size_t *count, uint8_t *out, size_t room, int *result) {
    size_t left = room;
    BrotliDecoderResult got = BrotliDecoderDecompressStream(state->brotli, count, in, &left, &out, NULL);
    *result = got == BROTLI_DECODER_RESULT_SUCCESS             ? ccodings_end
              : got == BROTLI_DECODER_RESULT_NEEDS_MORE_OUTPUT ? ccodings_more
                                                               : ccodings_malformed;
    return room - left;
}

size_t ccodings_step(ccodings *state, const uint8_t **in, size_t *count, uint8_t *out, size_t room, int *result) {
    if (state->brotli) return step_brotli(state, in, count, out, room, result);
    z_stream *zlib = &state->zlib;
    const uint8_t *whole = *in;
    const size_t whole_count = *count;
    const int is_first = !state->has_begun;
    state->has_begun = 1;
    zlib->next_out = out;
    zlib->avail_out = room > UINT_MAX ? UINT_MAX : (uInt)room;
    const uInt offered = zlib->avail_out;
    *result = ccodings_more;
    while (zlib->avail_out > 0 && *result == ccodings_more) {
        zlib->next_in = (Bytef *)*in;
        const uInt given = *count > UINT_MAX ? UINT_MAX : (uInt)*count;
        zlib->avail_in = given;
        int got = inflate(zlib, Z_NO_FLUSH);
        *in += given - zlib->avail_in;
        *count -= given - zlib->avail_in;
        if (got == Z_STREAM_END) {
            // A gzip file may have several members. Like gzip, this ignores other data after a member.
            if (state->coding != ccodings_gzip || *count < 2 || (*in)[0] != 0x1F || (*in)[1] != 0x8B
                || inflateReset(zlib) != Z_OK)
                *result = ccodings_end;
        } else if (got == Z_DATA_ERROR && is_first && state->coding == ccodings_deflate && zlib->total_out == 0
                   && inflateReset2(zlib, -15) == Z_OK) {
            // Some servers send deflate data without a zlib header. Browsers accept both forms.
            state->coding = -1;
            *in = whole;
            *count = whole_count;
        } else if (got != Z_OK) {
            // Z_BUF_ERROR means that all input has been consumed and more is needed.
            *result = ccodings_malformed;
        }
    }
    return offered - zlib->avail_out;
}
