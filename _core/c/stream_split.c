/* stream_split.c - BYTE_STREAM_SPLIT: byte k of each value lies in stream k (Encodings.md, "Byte Stream
 * Split"). A row is addressed by its number; only rows that are chosen are put together. */
#include "leaf.h"

static ps_status open(ps_leaf *leaf, ps_error *err) {
    size_t size;
    if (!ps_mul_size((size_t)leaf->page.n_values, leaf->in_width, &size) ||
        size != leaf->page.values_length) {
        return ps_fail(err, PS_CORRUPT, ps_page_byte(leaf, leaf->page.values),
                       "%zu bytes of %zu streams do not hold %lld values",
                       leaf->page.values_length, leaf->in_width,
                       (long long)leaf->page.n_values);
    }
    return PS_OK;
}

static ps_status skip(ps_leaf *leaf, int64_t n, ps_error *err) {
    (void)leaf, (void)n, (void)err; /* addressed by leaf->page.value */
    return PS_OK;
}

/* Moves bytes of streams that lie `stride` apart to values side by side. It stores to neighbours, so that compilers
 * make vectors of the loop. */
static void join2(const uint8_t *in, size_t stride, uint8_t *restrict out, size_t n) {
    const uint8_t *a = in, *b = in + stride;
    for (size_t i = 0; i < n; i++) out[2 * i] = a[i], out[2 * i + 1] = b[i];
}
static void join4(const uint8_t *in, size_t stride, uint8_t *restrict out, size_t n) {
    const uint8_t *a = in, *b = a + stride, *c = b + stride, *d = c + stride;
    for (size_t i = 0; i < n; i++) {
        out[4 * i] = a[i], out[4 * i + 1] = b[i];
        out[4 * i + 2] = c[i], out[4 * i + 3] = d[i];
    }
}
static void join8(const uint8_t *const *in, uint8_t *restrict out, size_t n) {
    const uint8_t *a = in[0], *b = in[1], *c = in[2], *d = in[3];
    const uint8_t *e = in[4], *f = in[5], *g = in[6], *h = in[7];
    for (size_t i = 0; i < n; i++) {
        out[8 * i] = a[i], out[8 * i + 1] = b[i];
        out[8 * i + 2] = c[i], out[8 * i + 3] = d[i];
        out[8 * i + 4] = e[i], out[8 * i + 5] = f[i];
        out[8 * i + 6] = g[i], out[8 * i + 7] = h[i];
    }
}

/* One value. */
PS_INLINE void pick(const uint8_t *in, size_t stride, size_t width, uint8_t *out) {
    for (size_t k = 0; k < width; k++) out[k] = in[k * stride];
}

enum { STRIP = 128 }; /* values of any width that are put together at a time */

/* Of up to STRIP values the eight bytes from number k on; those at and beyond `width` are any. */
static void join_part(const uint8_t *in, size_t stride, size_t width, size_t k, uint8_t *out,
                      size_t n) {
    uint8_t part[STRIP * 8];
    const uint8_t *streams[8];
    for (size_t i = 0; i < 8; i++) streams[i] = in + (k + i < width ? k + i : k) * stride;
    join8(streams, part, n);
    for (size_t i = 0; i < n; i++) memcpy(out + i * width + k, part + 8 * i, 8);
}

/* Values of any width, eight streams after eight. Those left over go first: what is written too much belongs
 * to the values that follow, and is written after it. */
static void join_any(const uint8_t *in, size_t stride, size_t width, uint8_t *out, size_t n) {
    const size_t over = width % 8, tail = n < 8 ? n : 8; /* the last have space for that, too */
    for (n -= tail; n;) {
        const size_t strip = n < STRIP ? n : STRIP;
        if (over) join_part(in, stride, width, width - over, out, strip);
        for (size_t k = 0; k + 8 <= width; k += 8) join_part(in, stride, width, k, out, strip);
        in += strip, out += strip * width, n -= strip;
    }
    for (size_t i = 0; i < tail; i++, out += width) pick(in + i, stride, width, out);
}

static void join(const uint8_t *in, size_t stride, size_t width, uint8_t *out, size_t n) {
    switch (width) {
    case 2: join2(in, stride, out, n); break;
    case 4: join4(in, stride, out, n); break;
    case 8: {
        const uint8_t *streams[8];
        for (size_t i = 0; i < 8; i++) streams[i] = in + i * stride;
        join8(streams, out, n);
        break;
    }
    default: join_any(in, stride, width, out, n);
    }
}

enum { RAW = PS_BLOCK * 16 }; /* bytes put together before they are converted */

/* n values at raw, those of the page from number `first` on, to out. */
static ps_status convert(const ps_leaf *leaf, const uint8_t *raw, size_t first, uint8_t *out,
                         size_t n, ps_error *err) {
    ps_status status = ps_convert_fixed(&leaf->spec, raw, out, n, err);
    if (status != PS_OK && err && err->offset != PS_NOWHERE)
        err->offset = ps_page_byte(leaf, leaf->page.values) + first +
                      err->offset / leaf->in_width;
    return status;
}

/* A value too wide for the stack, in leaf->page.last. */
static ps_status convert_wide(ps_leaf *leaf, size_t number, uint8_t *out, ps_error *err) {
    PS_TRY(ps_grow_reserve(&leaf->page.last, leaf->in_width, SIZE_MAX, err));
    pick(leaf->page.values + number, (size_t)leaf->page.n_values, leaf->in_width,
         leaf->page.last.data);
    return convert(leaf, leaf->page.last.data, number, out, 1, err);
}

static ps_status read_fixed(ps_leaf *leaf, uint8_t *out, int64_t n, ps_error *err) {
    const size_t width = leaf->in_width, stride = (size_t)leaf->page.n_values;
    size_t number = (size_t)leaf->page.value, rest = (size_t)n;
    if (width == 0) return PS_OK;
    if (leaf->copies) {
        join(leaf->page.values + number, stride, width, out, rest);
        return PS_OK;
    }
    uint8_t raw[RAW];
    for (size_t batch; rest; rest -= batch, number += batch, out += batch * leaf->out_width) {
        if (width > RAW) {
            batch = 1;
            PS_TRY(convert_wide(leaf, number, out, err));
            continue;
        }
        batch = rest < RAW / width ? rest : RAW / width;
        join(leaf->page.values + number, stride, width, raw, batch);
        PS_TRY(convert(leaf, raw, number, out, batch, err));
    }
    return PS_OK;
}

/* Where more than one in this number of values is kept, all values are put together. */
enum { DENSE = 4 };

static ps_status block_fixed(ps_leaf *leaf, uint8_t *out, size_t space, const ps_block *block,
                             ps_error *err) {
    const size_t width = leaf->in_width, stride = (size_t)leaf->page.n_values,
                 first = (size_t)leaf->page.value;
    const uint8_t *in = leaf->page.values + first;
    if (width == 0 || block->kept == 0) return PS_OK;
    if (leaf->copies && width <= 16 && block->kept > block->end / DENSE) {
        uint8_t raw[RAW];
        join(in, stride, width, raw, block->end);
        ps_compact(out, space, raw, width, block->mask, block->end);
        return PS_OK;
    }
    for (size_t word = 0; word < ps_words_for(block->end); word++) {
        for (uint64_t bits = block->mask[word]; bits; bits &= bits - 1) {
            const size_t i = word * 64 + (size_t)ps_ctz64(bits);
            uint8_t raw[64];
            if (leaf->copies) {
                switch (width) {
                case 4: pick(in + i, stride, 4, out); break;
                case 8: pick(in + i, stride, 8, out); break;
                default: pick(in + i, stride, width, out);
                }
            } else if (width <= sizeof raw) {
                pick(in + i, stride, width, raw);
                PS_TRY(convert(leaf, raw, first + i, out, 1, err));
            } else {
                PS_TRY(convert_wide(leaf, first + i, out, err));
            }
            out += leaf->out_width;
        }
    }
    return PS_OK;
}

const ps_encoding ps_stream_split = {
    .rows_per_run = 256,
    .rows_per_run_nulls = 192,
    .open = open,
    .skip = skip,
    .read = read_fixed,
    .block = block_fixed,
};
