/* zstd.c - pages of codec ZSTD by the libzstd of this system; contexts are kept for the next thread that decodes. */
#include "zstd.h"
#include "contexts.h"
#include "shared.h"

#define MAGIC      0xFD2FB528u
#define SESSION    1     /* ZSTD_reset_session_only */
#define STABLE_OUT 1001  /* ZSTD_d_stableOutBuffer, of 1.4.5 to 1.5 */
#define HEADER     18    /* of a frame, at most */
#define MOST_RATIO 40000 /* a repeated-byte block of 128 KiB takes four bytes */
#define KEPT       ((size_t)4 << 20)

struct ps_zstd_state {
    ps_zstd library;
    bool ready;
    ps_contexts contexts;
};

static ps_zstd_state own;
static ps_zstd_state *shared = &own;

static void *borrow(void) {
    void *context = ps_contexts_take(&shared->contexts);
    return context ? context : shared->library.create();
}

static void give_back(void *context) {
    if (!ps_contexts_keep(&shared->contexts, context)) shared->library.free(context);
}

ps_zstd_state *ps_zstd_own(void) {
    return &own;
}

void ps_zstd_share(ps_zstd_state *state) {
    shared = state;
}

void ps_zstd_use(const ps_zstd *library) {
    void *context;
    shared->ready = false;
    while ((context = ps_contexts_take(&shared->contexts)) != NULL)
        shared->library.free(context); /* of the library of before */
    if (library) shared->library = *library;
    shared->ready = library != NULL;
}

bool ps_zstd_ready(void) {
    return shared->ready;
}

bool ps_zstd_fits(const uint8_t *data, size_t length, size_t size) {
    /* frames of before 0.8, which a library may know, are none of Parquet's */
    return shared->ready && length >= 8 && ps_load32(data) == MAGIC &&
           size / MOST_RATIO <= length && shared->library.content_size(data, length) == size &&
           shared->library.frame_length(data, length) == length;
}

bool ps_zstd_decode(const uint8_t *data, size_t length, uint8_t *out, size_t size) {
    void *context = borrow();
    if (!context) return false;
    const bool done = shared->library.decompress(context, out, size, data, length) == size;
    give_back(context);
    return done;
}

void *ps_zstd_begin(void) {
    void *context = borrow();
    /* without it each block is decoded elsewhere first, and copied: a few percent */
    if (context && shared->library.set) (void)shared->library.set(context, STABLE_OUT, 1);
    return context;
}

bool ps_zstd_more(void *context, ps_zstd_in *in, ps_zstd_out *out, size_t *hint, size_t reach) {
    const size_t length = in->size;
    /* all of a frame includes its checksum */
    bool over = in->pos && *hint == 0;
    while (reach < out->size ? out->pos < reach : !over) {
        const size_t before = out->pos + in->pos, step = *hint ? *hint : HEADER;
        in->size = step < length - in->pos ? in->pos + step : length;
        const size_t left = shared->library.stream(context, out, in);
        in->size = length;
        if (shared->library.is_error(left)) return false;
        *hint = left; /* what the next block takes */
        over = left == 0;
        if ((over && out->pos < reach) || (!over && out->pos + in->pos == before)) return false;
    }
    return out->pos >= reach;
}

void ps_zstd_end(void *context, size_t size) {
    if (!context) return;
    shared->library.reset(context, SESSION);
    if (size > KEPT) { /* its window may be as large */
        shared->library.free(context);
    } else {
        give_back(context);
    }
}
