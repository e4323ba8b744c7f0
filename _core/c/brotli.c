/* brotli.c - pages of codec BROTLI by the libbrotlidec of this system (RFC 7932). */
#include "brotli.h"
#include "shared.h"

enum { FAILED = 0, DONE = 1, MORE_INPUT = 2 }; /* BrotliDecoderResult */
#define MOST_RATIO ((size_t)1 << 21) /* a meta-block of 16 MiB takes at least eight bytes */

struct ps_brotli_state {
    ps_brotli library;
    bool ready;
};

static ps_brotli_state own;
static ps_brotli_state *shared = &own;

ps_brotli_state *ps_brotli_own(void) {
    return &own;
}

void ps_brotli_share(ps_brotli_state *state) {
    shared = state;
}

void ps_brotli_use(const ps_brotli *library) {
    shared->ready = library != NULL;
    if (library) shared->library = *library;
}

bool ps_brotli_ready(void) {
    return shared->ready;
}

bool ps_brotli_fits(size_t length, size_t size) {
    return shared->ready && length > 0 && size / MOST_RATIO <= length;
}

void *ps_brotli_begin(void) {
    return shared->library.create(NULL, NULL, NULL); /* the library has no way to reset one */
}

bool ps_brotli_more(void *context, ps_zstd_in *in, uint8_t *out, size_t *have, size_t reach,
                    size_t size) {
    if (*have >= reach && reach < size) return true;
    const uint8_t *next_in = (const uint8_t *)in->src + in->pos;
    uint8_t *next_out = out + *have;
    size_t left = in->size - in->pos, space = reach - *have;
    const int result = shared->library.stream(context, &left, &next_in, &space, &next_out,
                                              NULL);
    in->pos = in->size - left;
    *have = reach - space;
    if (result == FAILED || *have < reach) return false;
    return reach < size || (result == DONE && left == 0);
}

void ps_brotli_end(void *context) {
    if (context) shared->library.destroy(context);
}
