/* Skipping: of every type, and the quick ways against the careful one. */
#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static ps_status skip(const bytes *b, int type, bool carefully, size_t *end) {
    copy c = exact(b->at, b->n);
    ps_thrift t = {c.data, c.data, c.data + b->n, &err, NULL};
    ps_status status = carefully ? ps_thrift_skip_carefully(&t, type)
                                 : ps_thrift_skip(&t, type);
    *end = (size_t)ps_thrift_at(&t);
    free(c.block);
    return status;
}

static void test_skip_of_every_type(void) {
    static bytes b;
    size_t end;
    const size_t sizes[] = {[PS_T_BYTE] = 1, [PS_T_DOUBLE] = 8, [PS_T_UUID] = 16};
    for (int type = 0; type <= PS_T_UUID; type++) {
        if (!sizes[type]) continue;
        for (size_t n = 0; n < 20; n++) {
            memset(b.at, 0xff, n);
            b.n = n;
            CHECK_INT(skip(&b, type, true, &end), n < sizes[type] ? PS_TRUNCATED : PS_OK);
            if (n >= sizes[type]) CHECK_INT(end, sizes[type]);
        }
    }
    b.n = 0; /* an integer of 10 bytes, of 10 bytes and 65 bits, of 11 bytes */
    varint(&b, UINT64_MAX);
    CHECK_INT(skip(&b, PS_T_I64, true, &end), PS_OK);
    CHECK_INT(end, 10);
    b.at[9] = 2;
    CHECK_INT(skip(&b, PS_T_I64, true, &end), PS_CORRUPT);
    b.at[9] = 0x81, byte(&b, 0);
    CHECK_INT(skip(&b, PS_T_I64, true, &end), PS_CORRUPT);
    b.n = 0; /* a map of bools to lists of bools */
    varint(&b, 2), byte(&b, PS_T_TRUE << 4 | PS_T_LIST);
    byte(&b, 1), list(&b, 2, PS_T_TRUE), byte(&b, 1), byte(&b, 0);
    byte(&b, 2), list(&b, 0, 0);
    CHECK_INT(skip(&b, PS_T_MAP, true, &end), PS_OK);
    CHECK_INT(end, b.n);
    b.n = 0;
    list(&b, INT32_MAX, PS_T_STRUCT), byte(&b, 0);
    CHECK_INT(skip(&b, PS_T_LIST, true, &end), PS_TRUNCATED);
    b.n = 0;
    list(&b, UINT64_C(1) << 32, PS_T_BYTE), byte(&b, 0);
    CHECK_INT(skip(&b, PS_T_LIST, true, &end), PS_CORRUPT);
    b.n = 0;
    varint(&b, UINT64_C(1) << 63);
    CHECK_INT(skip(&b, PS_T_BINARY, true, &end), PS_CORRUPT);
    CHECK_INT(skip(&b, 14, true, &end), PS_CORRUPT);
}

static void test_skip_limits_depth(void) {
    static bytes b;
    size_t end;
    for (int depth = 60; depth < 70; depth++) {
        b.n = 0;
        for (int i = 1; i < depth; i++) field(&b, 1, PS_T_STRUCT);
        for (int i = 0; i < depth; i++) byte(&b, 0);
        CHECK_INT(skip(&b, PS_T_STRUCT, false, &end),
                  depth <= PS_THRIFT_DEPTH ? PS_OK : PS_LIMIT);
    }
    memset(b.at, 0x19, sizeof b.at); /* lists of one list */
    b.n = sizeof b.at;
    CHECK_INT(skip(&b, PS_T_LIST, false, &end), PS_LIMIT);
}

/* The short walk and the careful skip on chunks with random damage, and behind each other. */
static void test_walk_agrees_with_careful_skip(void) {
    static bytes b;
    uint64_t seed = 88172645463325252u;
    size_t agreed = 0, ok = 0;
    for (int round = 0; round < 40000; round++) {
        size_t end[2];
        b.n = 0;
        chunk(&b);
        size_t n = b.n;
        for (int i = 0; i < 200; i++) byte(&b, i % 7 ? 0 : 0x15);
        for (int i = 0; i < round % 4; i++) {
            seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
            b.at[(seed >> 8) % n] = (uint8_t)((seed >> 40) % 3 ? seed >> 50
                                                               : (seed >> 50) & 0x1f);
        }
        ps_status quick = skip(&b, PS_T_STRUCT, false, &end[0]);
        ps_status careful = skip(&b, PS_T_STRUCT, true, &end[1]);
        agreed += quick == careful && (quick != PS_OK || end[0] == end[1]);
        ok += quick == PS_OK;
    }
    CHECK_INT(agreed, 40000);
    CHECK(ok > 10000 && ok < 40000);
}

/* ---- similar structs -------------------------------------------------------------------- */

static uint64_t seed = 88172645463325252u;

static uint64_t any(uint64_t below) {
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (seed >> 11) % below;
}

static void any_integers(bytes *b, size_t n, int type) {
    for (; n; n--) integer(b, 1, type, (int64_t)(any(UINT64_C(1) << 53) >> any(53)));
}
static void any_string(bytes *b, size_t limit) {
    char text[200] = {0};
    memset(text, 'x', (size_t)any(limit));
    string(b, text);
}

/* Which fields there are, and how many elements, depends on `kind` alone; lengths do not. */
static void any_chunk(bytes *b, unsigned kind) {
    field(b, 3, PS_T_STRUCT), integer(b, 1, PS_T_I32, 2);
    field(b, 1, PS_T_LIST), list(b, kind % 3, PS_T_I32);
    for (unsigned i = 0; i < kind % 3; i++) zigzag(b, (int64_t)any(10));
    field(b, 1, PS_T_LIST), list(b, 1 + kind % 2, PS_T_BINARY);
    for (unsigned i = 0; i < 1 + kind % 2; i++) any_string(b, 20);
    any_integers(b, 6, PS_T_I64);
    if (kind & 4) {
        field(b, 1, PS_T_STRUCT);
        field(b, 1, PS_T_BINARY), any_string(b, any(20) ? 9 : sizeof(char[200]));
        field(b, 1, PS_T_BINARY), any_string(b, 9);
        field(b, 1, any(8) ? PS_T_TRUE : PS_T_FALSE);
        any_integers(b, 1, PS_T_I64), byte(b, 0);
    }
    if (kind & 8) field(b, 1, PS_T_LIST), list(b, 1, PS_T_STRUCT), chunk(b);
    if (kind & 16) field(b, 1, PS_T_BYTE), byte(b, 77); /* nothing that the walk knows */
    byte(b, 0);
    any_integers(b, kind % 5, PS_T_I32), byte(b, 0);
}

/* One list: both skips, struct by struct, up to its end or the first error. */
static bool skips_agree(const bytes *b, ps_layouts *known, uint8_t layouts[7],
                        size_t *skipped) {
    copy c = exact(b->at, b->n);
    ps_error errors[2];
    ps_thrift quick = {c.data, c.data, c.data + b->n, &errors[0], NULL};
    ps_thrift careful = {c.data, c.data, c.data + b->n, &errors[1], NULL};
    bool agree = true;
    ps_status status = PS_OK;
    for (size_t i = 0; agree && status == PS_OK && quick.p < quick.end; i++) {
        uint8_t wild = (uint8_t)any(256);
        status = ps_thrift_skip_similar(&quick, known, any(30) ? &layouts[i % 7] : &wild);
        agree = status == ps_thrift_skip_carefully(&careful, PS_T_STRUCT);
        if (status == PS_OK) {
            agree &= quick.p == careful.p;
            ++*skipped;
        } else {
            agree &= errors[0].offset == errors[1].offset &&
                     strcmp(errors[0].message, errors[1].message) == 0;
        }
    }
    free(c.block);
    return agree;
}

static void test_skip_of_similar_structs_agrees_with_careful_skip(void) {
    static bytes b;
    static ps_layouts known;
    uint8_t layouts[7] = {0};
    size_t agreed = 0, skipped = 0, most = 0;
    for (int round = 0; round < 20000; round++) {
        unsigned kinds = 1u << any(6);
        if (round % 16 == 0) known.n = 0;
        b.n = 0;
        for (size_t i = 0; i < 28; i++) any_chunk(&b, (unsigned)(i % 7 * 5) % kinds);
        for (size_t i = any(3) * 100; i; i--) byte(&b, 0); /* space to walk the last ones */
        size_t n = b.n;
        for (int i = round % 4; i; i--)
            b.at[any(n)] = (uint8_t)(any(3) ? any(256) : any(2) ? any(32) : b.at[any(n)]);
        if (any(4) == 0) b.n -= any(n);
        agreed += skips_agree(&b, &known, layouts, &skipped);
        if (known.n > most) most = known.n;
    }
    CHECK_INT(agreed, 20000);
    CHECK_INT(most, PS_LAYOUTS);
    CHECK(skipped > 300000);
}

/* A layout stays one whatever the lengths are, and is learned again when it fits badly. */
static void test_layout_follows_growing_integers(void) {
    static bytes b;
    static ps_layouts known;
    uint8_t layout = 0;
    for (int i = 0; i < 200; i++) {
        b.n = 0;
        integer(&b, 1, PS_T_I64, i ? 1 << 20 : 1);
        integer(&b, 1, PS_T_I32, 1);
        field(&b, 1, PS_T_BINARY), any_string(&b, 200);
        integer(&b, 1, PS_T_I64, i ? 1 : 1 << 30);
        byte(&b, 0);
        size_t n = b.n;
        for (int k = 0; k < 200; k++) byte(&b, 0xff);
        ps_thrift t = {b.at, b.at, b.at + b.n, &err, NULL};
        CHECK_INT(ps_thrift_skip_similar(&t, &known, &layout), PS_OK);
        CHECK_INT(ps_thrift_at(&t), n);
        CHECK_INT(known.n, 1);
    }
    CHECK_INT(known.at[0].misfits, 0);
}

/* The width of an integer is no part of a layout, but 64 bits are the limit with or without one. */
static void test_integers_wider_than_in_the_layout(void) {
    static bytes b;
    static ps_layouts known;
    for (size_t known_width = 1; known_width <= 10; known_width++) {
        uint8_t layout = 0;
        known.n = 0;
        for (size_t width = known_width, left = 24; left; left--, width = width % 12 + 1) {
            b.n = 0;
            field(&b, 1, PS_T_I64), memset(b.at + b.n, 0x80, width), b.n += width;
            b.at[b.n - 1] = 1;
            integer(&b, 1, PS_T_I64, 5), byte(&b, 0);
            size_t end = b.n;
            memset(b.at + b.n, 0, 200), b.n += 200;
            ps_thrift t = {b.at, b.at, b.at + b.n, &err, NULL};
            ps_status status = ps_thrift_skip_similar(&t, &known, &layout);
            CHECK_INT(status, width <= 10 ? PS_OK : PS_CORRUPT);
            if (status == PS_OK) CHECK_INT(ps_thrift_at(&t), end);
            CHECK(known.n <= 1);
        }
    }
}

static void test_structs_too_long_for_a_layout(void) {
    static bytes b;
    static ps_layouts known;
    uint8_t layout = 0;
    b.n = 0;
    for (int i = 0; i < 3; i++) {
        field(&b, 1, PS_T_LIST), list(&b, 14, PS_T_BINARY);
        for (int k = 0; k < 14; k++) any_string(&b, 9);
    }
    byte(&b, 0);
    size_t end = b.n;
    memset(b.at + b.n, 0, 200), b.n += 200;
    for (int i = 0; i < 3; i++) {
        ps_thrift t = {b.at, b.at, b.at + b.n, &err, NULL};
        CHECK_INT(ps_thrift_skip_similar(&t, &known, &layout), PS_OK);
        CHECK_INT(ps_thrift_at(&t), end);
        CHECK_INT(known.n, 0);
    }
}

int main(void) {
    test_skip_of_every_type();
    test_skip_limits_depth();
    test_walk_agrees_with_careful_skip();
    test_skip_of_similar_structs_agrees_with_careful_skip();
    test_layout_follows_growing_integers();
    test_integers_wider_than_in_the_layout();
    test_structs_too_long_for_a_layout();
    return check_report();
}
