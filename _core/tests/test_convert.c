/* test_convert.c - values at the ends of what their kind holds. */
#include <stdlib.h>

#include "../c/convert.h"
#include "check.h"

#define DAY INT64_C(86400000000000)

typedef __int128 wide; /* the slow twin has space for every sum */

static wide floor_by(wide a, wide b) {
    return a / b - (a % b < 0);
}

static void put(uint8_t out[12], int64_t nanos, uint32_t day) {
    memcpy(out, &nanos, 8);
    memcpy(out + 8, &day, 4);
}

/* One INT96 against its twin, in a unit. */
static void check_int96(int64_t nanos, uint32_t julian, int32_t unit) {
    static const int64_t per[] = {
        [PS_UNIT_MS] = 1000000, [PS_UNIT_US] = 1000, [PS_UNIT_NS] = 1};
    const ps_leaf_spec spec = {.physical = PQ_INT96, .kind = PS_I64, .unit = unit};
    const wide all = ((wide)julian - 2440588) * DAY + nanos, wanted = floor_by(all, per[unit]);
    const bool fits = wanted >= INT64_MIN && wanted <= INT64_MAX;
    uint8_t in[12], out[8];
    int64_t found;
    ps_error err;
    put(in, nanos, julian);
    CHECK_INT(ps_convert_fixed(&spec, in, out, 1, &err), fits ? PS_OK : PS_LIMIT);
    memcpy(&found, out, 8);
    if (fits) CHECK_INT(found, (int64_t)wanted);
    if (!fits && unit == PS_UNIT_NS) CHECK(strstr(err.message, "int96_unit=\"us\"") != NULL);

    /* as a bound: known only where it fits, and the nanoseconds lie within a day */
    const int64_t offset = 0, size = 12;
    uint8_t known = 9;
    CHECK_INT(ps_convert_plain(&spec, in, 12, &offset, &size, 1, out, NULL, &known, NULL),
              PS_OK);
    CHECK_INT(known, fits && nanos >= 0 && nanos < DAY && julian <= INT32_MAX);
}

static void int96_at_every_end(void) {
    static const int64_t around[] = {INT64_MIN, -DAY, -1000000, 0, 1000000, DAY, INT64_MAX};
    const int64_t furthest[] = {0, 106751, 106752, 213503, 213504, 106751991, 1853027305};
    for (int32_t unit = PS_UNIT_MS; unit <= PS_UNIT_NS; unit++) {
        for (size_t i = 0; i < sizeof furthest / sizeof *furthest; i++)
            for (int sign = -1; sign <= 1; sign += 2)
                for (int64_t step = -2; step <= 2; step++) {
                    const int64_t day = 2440588 + sign * furthest[i] + step;
                    if (day < 0 || day > (int64_t)UINT32_MAX) continue;
                    for (size_t k = 0; k < sizeof around / sizeof *around; k++)
                        for (int64_t by = -2; by <= 2; by++) {
                            wide nanos = (wide)around[k] + by;
                            if (nanos < INT64_MIN || nanos > INT64_MAX) continue;
                            check_int96((int64_t)nanos, (uint32_t)day, unit);
                        }
                    /* and where the sum itself ends */
                    for (int64_t by = -2; by <= 2; by++) {
                        const wide start = (wide)(day - 2440588) * DAY;
                        const wide ends[] = {INT64_MIN - start + by, INT64_MAX - start + by};
                        for (size_t k = 0; k < 2; k++)
                            if (ends[k] >= INT64_MIN && ends[k] <= INT64_MAX)
                                check_int96((int64_t)ends[k], (uint32_t)day, unit);
                    }
                }
        for (size_t k = 0; k < sizeof around / sizeof *around; k++) {
            check_int96(around[k], 0, unit);
            check_int96(around[k], UINT32_MAX, unit);
            check_int96(around[k], INT32_MAX, unit);
        }
    }
}

/* Values of a width that a schema claims have space only where they are. */
static void fixed_bounds_are_packed(void) {
    const ps_leaf_spec spec = {
        .physical = PQ_FIXED, .type_length = 1 << 27, .kind = PS_FIXED, .width = 1 << 27};
    const int64_t offset[] = {0, 1, PS_ABSENT, 2}, size[] = {1, 2, 0, 0};
    const uint8_t data[] = "abc";
    int32_t offsets[5] = {9, 9, 9, 9, 9};
    uint8_t values[1], known[] = {9, 9, 9, 9};
    CHECK_INT(ps_convert_plain(&spec, data, 3, offset, size, 4, values, offsets, known, NULL),
              PS_OK);
    for (int i = 0; i < 4; i++) CHECK_INT(known[i], 0);
    for (int i = 0; i < 5; i++) CHECK_INT(offsets[i], 0);

    const ps_leaf_spec two = {
        .physical = PQ_FIXED, .type_length = 2, .kind = PS_FIXED, .width = 2};
    uint8_t pair[2];
    CHECK_INT(ps_convert_plain(&two, data, 3, offset, size, 4, pair, offsets, known, NULL),
              PS_OK);
    CHECK(memcmp(pair, "bc", 2) == 0);
    const int32_t wanted[] = {0, 0, 2, 2, 2};
    for (int i = 0; i < 5; i++) CHECK_INT(offsets[i], wanted[i]);
    CHECK(!known[0] && known[1] && !known[2] && !known[3]);
}

/* Decimals around each power of ten, beside what 128-bit arithmetic says. */
static void decimals_beyond_their_precision(void) {
    for (int precision = 1; precision <= 38; precision++) {
        const ps_leaf_spec spec = {
            .physical = PQ_INT64, .kind = PS_D128, .width = 16, .range = precision};
        unsigned __int128 limit = 1;
        for (int i = 0; i < precision; i++) limit *= 10;
        const __int128 edges[] = {0,
                                  (__int128)limit,
                                  (__int128)1 << 62,
                                  (__int128)1 << 63,
                                  (__int128)1 << 64,
                                  (__int128)1 << 126};
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++)
            for (int near = -2; near <= 2; near++)
                for (int sign = -1; sign <= 1; sign += 2) {
                    const __int128 values[2] = {0, sign * (edges[e] + near)};
                    const bool within = values[1] < (__int128)limit &&
                                        values[1] > -(__int128)limit;
                    CHECK_INT(ps_convert_beyond(&spec, (const uint8_t *)values, NULL, 2),
                              within ? -1 : 1);
                }
    }
}

/* Decimals of every width, in memory that ends with them, against the conversion of one. */
static void decimals_of_every_width(void) {
    static const uint8_t fill[] = {0, 0xff, 0x80, 0x7f, 1};
    uint32_t seed = 5;
    for (int32_t from = 1; from <= 33; from++)
        for (size_t n = 0; n <= 11; n++)
            for (int kind = PS_D128; kind <= PS_D256; kind += PS_D256 - PS_D128)
                for (size_t way = 0; way <= sizeof fill; way++) {
                    const size_t width = (size_t)from, to = kind == PS_D128 ? 16 : 32;
                    const ps_leaf_spec spec = {.physical = PQ_FIXED,
                                               .kind = kind,
                                               .width = (int32_t)to,
                                               .type_length = from};
                    const size_t size = n * width;
                    uint8_t *in = malloc(size + (size == 0)), *out = malloc(n * to + 1);
                    uint8_t wanted[32];
                    bool fits = true;
                    for (size_t i = 0; i < size; i++) {
                        seed = seed * 1664525 + 1013904223;
                        in[i] = way < sizeof fill ? fill[way] : (uint8_t)(seed >> 13);
                    }
                    for (size_t i = 0; i < n; i++)
                        fits &= ps_convert_decimal(in + i * width, width, wanted, to);
                    CHECK_INT(ps_convert_fixed(&spec, in, out, n, NULL),
                              fits ? PS_OK : PS_CORRUPT);
                    for (size_t i = 0; fits && i < n; i++) {
                        ps_convert_decimal(in + i * width, width, wanted, to);
                        CHECK(memcmp(out + i * to, wanted, to) == 0);
                    }
                    free(in);
                    free(out);
                }
}

/* Decimals of integers. */
static void decimals_of_integers(void) {
    static const int64_t values[] = {0,         1,         -1,        77,       -77,
                                     INT32_MIN, INT32_MAX, INT64_MIN, INT64_MAX};
    enum { N = sizeof values / sizeof *values };
    for (int wide_in = 0; wide_in < 2; wide_in++)
        for (int kind = PS_D128; kind <= PS_D256; kind += PS_D256 - PS_D128) {
            const size_t to = kind == PS_D128 ? 16 : 32;
            const ps_leaf_spec spec = {
                .physical = wide_in ? PQ_INT64 : PQ_INT32, .kind = kind, .width = (int32_t)to};
            uint8_t in[8 * N], out[32 * N], wanted[32];
            for (int i = 0; i < N; i++) {
                const int32_t narrow = (int32_t)values[i];
                memcpy(in + (wide_in ? 8 : 4) * i, wide_in ? (const void *)&values[i] : &narrow,
                       wide_in ? 8 : 4);
            }
            CHECK_INT(ps_convert_fixed(&spec, in, out, N, NULL), PS_OK);
            for (size_t i = 0; i < N; i++) {
                const int64_t value = wide_in ? values[i] : (int32_t)values[i];
                memset(wanted, value < 0 ? 0xff : 0, sizeof wanted);
                memcpy(wanted, &value, 8);
                CHECK(memcmp(out + i * to, wanted, to) == 0);
            }
        }
}

int main(void) {
    decimals_of_every_width();
    decimals_of_integers();
    decimals_beyond_their_precision();
    int96_at_every_end();
    fixed_bounds_are_packed();
    return check_report();
}
