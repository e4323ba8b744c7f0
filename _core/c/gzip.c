/* gzip.c - pages of codec GZIP by the zlib of this system; contexts are kept for the next thread that decodes.
 *
 * A page is a row of members, each of gzip or of zlib (RFC 1952, 1950). */
#include <stdlib.h>

#include "contexts.h"
#include "gzip.h"
#include "shared.h"

enum {
    ANY_WRAPPER = 47, /* windowBits: 15, and 32 to recognise gzip and zlib */
    NO_FLUSH = 0,
    FINISH = 4, /* no more output is wanted: no window is kept */
    OK = 0,
    STREAM_END = 1,
    BUF_ERROR = -5,
    MOST_RATIO = 1032 /* 258 bytes take two bits */
};

struct ps_zlib_state {
    ps_zlib library;
    bool ready;
    ps_contexts contexts; /* of ps_zlib_stream: zlib refers back to it, so it must not move */
};

static ps_zlib_state own;
static ps_zlib_state *shared = &own;

ps_zlib_state *ps_zlib_own(void) {
    return &own;
}

void ps_zlib_share(ps_zlib_state *state) {
    shared = state;
}

static void drop(ps_zlib_stream *stream) {
    shared->library.end(stream);
    free(stream);
}

void ps_zlib_use(const ps_zlib *library) {
    void *stream;
    shared->ready = false;
    while ((stream = ps_contexts_take(&shared->contexts)) != NULL) drop(stream);
    if (library) shared->library = *library;
    shared->ready = library != NULL;
}

bool ps_zlib_ready(void) {
    return shared->ready;
}

bool ps_gzip_fits(size_t length, size_t size) {
    return shared->ready && size / MOST_RATIO <= length;
}

void *ps_gzip_begin(void) {
    ps_zlib_stream *stream = ps_contexts_take(&shared->contexts);
    if (stream) {
        if (shared->library.reset(stream) == OK) return stream;
        drop(stream);
    }
    stream = calloc(1, sizeof *stream);
    if (!stream) return NULL;
    if (shared->library.init(stream, ANY_WRAPPER, "1", (int)sizeof *stream) == OK)
        return stream;
    free(stream);
    return NULL;
}

static unsigned at_most(size_t n) {
    return n < UINT32_MAX ? (unsigned)n : UINT32_MAX;
}

bool ps_gzip_more(void *context, ps_zstd_in *in, uint8_t *out, size_t *have, size_t reach,
                  size_t size) {
    ps_zlib_stream *s = context;
    const uint8_t *data = in->src;
    /* an input without a member is as good as one with an empty member */
    bool over = in->pos == 0 && in->size == 0;
    while (!over && (*have < reach || reach == size)) {
        const unsigned given = at_most(in->size - in->pos), space = at_most(reach - *have);
        s->next_in = data + in->pos;
        s->avail_in = given;
        s->next_out = out + *have;
        s->avail_out = space;
        const int status = shared->library.inflate(s, reach == size ? FINISH : NO_FLUSH);
        const size_t taken = given - s->avail_in, made = space - s->avail_out;
        in->pos += taken;
        *have += made;
        if (status == STREAM_END) {
            over = in->pos == in->size;
            /* A member ends with checksums. Bytes after it are the next one. */
            if (!over && shared->library.reset(s) != OK) return false;
        } else if ((status != OK && status != BUF_ERROR) || taken + made == 0) {
            return false;
        }
    }
    return *have >= reach;
}

void ps_gzip_end(void *context) {
    if (context && !ps_contexts_keep(&shared->contexts, context)) drop(context);
}
