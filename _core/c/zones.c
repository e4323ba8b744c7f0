/* zones.c - the outcomes that a predicate may have in rows of a zone, from its bounds and counts alone.
 *
 * A verdict joins up to three groups of rows: nulls, NaN, and the rest ("numbers", of any kind).
 * Counts say which groups may be there; the literal decides NaN; only numbers need the
 * bounds. */
#include "values.h"

enum { ANY = PS_MAY_TRUE | PS_MAY_FALSE };

/* Groups that a zone may hold. DOUBT: its figures contradict each other, so none of them
 * counts. */
enum { HAS_NULL = 1, HAS_NAN = 2, HAS_NUMBER = 4, DOUBT = 8 };

static int64_t figure(const int64_t *figures, size_t i) {
    return figures && figures[i] >= 0 ? figures[i] : -1;
}

/* A null page has no bounds, although it has bytes for them. */
static bool bounded(const ps_zones *z, size_t i) {
    return z->known[i] && !(z->all_null && z->all_null[i]);
}

static int groups(const ps_zones *z, size_t i, bool is_float) {
    int64_t rows = figure(z->counts, i), nulls = figure(z->null_counts, i);
    int64_t nans = is_float ? figure(z->nan_counts, i) : 0;
    int64_t valid = rows >= 0 && nulls >= 0 ? rows - nulls : -1;
    bool null_page = z->all_null && z->all_null[i];
    int unknown = HAS_NULL | HAS_NUMBER | (is_float ? HAS_NAN : 0) | DOUBT;

    if (rows >= 0 && (nulls > rows || nans > rows - (nulls > 0 ? nulls : 0))) return unknown;
    if (null_page) {
        if (nans > 0 || valid > 0 || (nulls == 0 && rows != 0)) return unknown;
        return rows == 0 ? 0 : HAS_NULL;
    }
    if (rows == 0) return 0;
    /* bounds are the bounds of some number */
    if (z->known[i] && (valid == 0 || (valid > 0 && nans == valid))) return unknown;
    if (valid == 0) return HAS_NULL;
    return (nulls != 0 ? HAS_NULL : 0) | (nans != 0 ? HAS_NAN : 0) |
           (valid >= 0 && nans == valid ? 0 : HAS_NUMBER);
}

/* ---- where the literal lies -------------------------------------------------------------- */

/* Position of a literal v against [lower, upper]: one bit for each of four tests. */
enum { LO_LT = 1, LO_LE = 2, HI_LT = 4, HI_LE = 8, BROKEN = 16, N_POSITIONS = 32 };

static uint8_t position_verdict(ps_op op, int position) {
    bool lo_lt = position & LO_LT, lo_le = position & LO_LE;
    bool hi_lt = position & HI_LT, hi_le = position & HI_LE;
    bool lo_eq = lo_le && !lo_lt, hi_eq = hi_le && !hi_lt;
    bool may, may_not;
    if (position & BROKEN) return ANY;
    switch (op) {
    case PS_LT: may = lo_lt, may_not = !hi_lt; break;
    case PS_LE: may = lo_le, may_not = !hi_le; break;
    case PS_GT: may = !hi_le, may_not = lo_le; break;
    case PS_GE: may = !hi_lt, may_not = lo_lt; break;
    case PS_NE: may = !(lo_eq && hi_eq), may_not = lo_le && !hi_lt; break;
    default: may = lo_le && !hi_lt, may_not = !(lo_eq && hi_eq); break; /* = and prefix */
    }
    return (uint8_t)((may ? PS_MAY_TRUE : 0) | (may_not ? PS_MAY_FALSE : 0));
}

/* One pass over all zones; bounds that are not known cost nothing and their result is replaced.
 */
#define POSITIONS(KIND, name)                                                                  \
    case KIND: {                                                                               \
        ps_t_##name v = ps_load_##name(literal->values, 0);                                    \
        for (int64_t i = 0; i < (int64_t)z->n; i++) {                                          \
            ps_t_##name lo = ps_load_##name(z->lower.values, i);                               \
            ps_t_##name hi = ps_load_##name(z->upper.values, i);                               \
            out[i] =                                                                           \
                (uint8_t)(ps_less_##name(lo, v) * LO_LT | !ps_less_##name(v, lo) * LO_LE |     \
                          ps_less_##name(hi, v) * HI_LT | !ps_less_##name(v, hi) * HI_LE |     \
                          !(ps_less_##name(lo, hi) || ps_equal_##name(lo, hi)) * BROKEN);      \
        }                                                                                      \
        return;                                                                                \
    }

static int bound_order(const ps_values *bounds, int64_t i, const ps_values *literal,
                       bool prefix) {
    return prefix ? ps_prefix_order(ps_bytes_at(bounds, i), ps_bytes_at(literal, 0))
                  : ps_value_order(bounds, i, literal, 0);
}

static void positions(const ps_zones *z, const ps_values *literal, bool prefix, uint8_t *out) {
    switch (z->lower.kind) {
        PS_NUMBER_KINDS(POSITIONS)
    default: break;
    }
    for (size_t k = 0; k < z->n; k++) {
        int64_t i = (int64_t)k;
        if (!bounded(z, k)) continue;
        int lo = bound_order(&z->lower, i, literal, prefix);
        int hi = bound_order(&z->upper, i, literal, prefix);
        bool broken = ps_value_order(&z->lower, i, &z->upper, i) > 0;
        out[k] = (uint8_t)((lo < 0) * LO_LT | (lo <= 0) * LO_LE | (hi < 0) * HI_LT |
                           (hi <= 0) * HI_LE | broken * BROKEN);
    }
}

/* Number of leading zones whose bound is < v (<= v with `equal`) when ascending, not so when
 * descending. Zones without bounds take the side of the bounded zone before them. */
static size_t split(const ps_zones *z, const ps_values *bounds, const ps_values *literal,
                    int64_t at, bool prefix, bool equal) {
    size_t low = 0, high = z->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2, k = middle;
        if (z->nearest) {
            k = z->nearest[middle] > (int64_t)low ? (size_t)z->nearest[middle] : low;
        } else {
            while (k > low && !bounded(z, k)) k--;
        }
        bool before = true;
        if (bounded(z, k)) {
            int order = prefix ? bound_order(bounds, (int64_t)k, literal, true)
                               : ps_value_order(bounds, (int64_t)k, literal, at);
            before = (order < (int)equal) == (z->order == 1);
        }
        if (before) {
            low = middle + 1;
        } else {
            high = k;
        }
    }
    return low;
}

static int by_place(const size_t ends[4], size_t i, bool ascending) {
    int position = 0;
    for (int test = 0; test < 4; test++) position |= ((i < ends[test]) == ascending) << test;
    return position;
}

/* Up to five stretches of equal verdict. */
static void fill_ordered(const ps_zones *z, const ps_values *literal, bool prefix,
                         const uint8_t table[N_POSITIONS], uint8_t *out) {
    size_t ends[4] = {split(z, &z->lower, literal, 0, prefix, false),
                      split(z, &z->lower, literal, 0, prefix, true),
                      split(z, &z->upper, literal, 0, prefix, false),
                      split(z, &z->upper, literal, 0, prefix, true)};
    for (size_t from = 0, to; from < z->n; from = to) {
        to = z->n;
        for (int test = 0; test < 4; test++)
            if (ends[test] > from && ends[test] < to) to = ends[test];
        memset(out + from, table[by_place(ends, from, z->order == 1)], to - from);
    }
}

static size_t min(size_t a, size_t b) {
    return a < b ? a : b;
}
static size_t max(size_t a, size_t b) {
    return a > b ? a : b;
}

/* ---- IN ---------------------------------------------------------------------------------- */

static uint8_t in_verdict(const ps_zones *z, size_t k, const ps_values *literals) {
    int64_t i = (int64_t)k;
    int width = ps_value_order(&z->lower, i, &z->upper, i);
    if (width > 0 || ps_value_is_nan(&z->lower, i) || ps_value_is_nan(&z->upper, i)) return ANY;
    int64_t at = ps_value_search(literals, &z->lower, i, false);
    if (at >= literals->n || ps_value_order(literals, at, &z->upper, i) > 0)
        return PS_MAY_FALSE;
    return width == 0 ? PS_MAY_TRUE : ANY;
}

/* One of several prefixes. What starts with a prefix lies from it on, without a gap. */
static uint8_t prefixes_verdict(const ps_zones *z, size_t k, const ps_values *literals) {
    ps_bytes lo = ps_bytes_at(&z->lower, (int64_t)k), hi = ps_bytes_at(&z->upper, (int64_t)k);
    if (ps_bytes_order(lo, hi) > 0) return ANY;
    int64_t of_lo = ps_prefix_of(literals, lo);
    if (of_lo >= 0)
        return ps_prefix_order(hi, ps_bytes_at(literals, of_lo)) == 0 ? PS_MAY_TRUE : ANY;
    return ps_bytes_upto(literals, hi) > ps_bytes_upto(literals, lo) ? ANY : PS_MAY_FALSE;
}

/* Each literal marks the zones around it. Literals ascend, so what one has marked is one end of
 * the file, and the next only adds to it. */
static void in_ordered(const ps_zones *z, const ps_values *literals, uint8_t *out) {
    bool ascending = z->order == 1;
    size_t done = ascending ? 0 : z->n;
    memset(out, PS_MAY_FALSE, z->n);
    for (int64_t at = 0; at < literals->n; at++) {
        size_t lo_lt = split(z, &z->lower, literals, at, false, false);
        size_t lo_le = split(z, &z->lower, literals, at, false, true);
        size_t hi_lt = split(z, &z->upper, literals, at, false, false);
        size_t hi_le = split(z, &z->upper, literals, at, false, true);
        /* [from, to) may hold the literal, [one, end) nothing else */
        size_t from = hi_lt, to = lo_le, one = max(lo_lt, hi_lt), end = min(lo_le, hi_le);
        if (ascending) {
            from = max(from, done), done = max(to, done);
        } else {
            from = lo_le, to = min(hi_lt, done), done = min(from, done);
            one = max(lo_le, hi_le), end = min(lo_lt, hi_lt);
        }
        if (from < to) memset(out + from, ANY, to - from);
        if (one < end) memset(out + one, PS_MAY_TRUE, end - one);
    }
}

/* ---- the whole --------------------------------------------------------------------------- */

static ps_status check(const ps_zones *z, ps_error *err) {
    if (z->lower.kind != z->upper.kind || z->lower.n != (int64_t)z->n ||
        z->upper.n != (int64_t)z->n)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "bounds do not match %zu zones", z->n);
    if (z->n && !z->known)
        return ps_fail(err, PS_INVALID, PS_NOWHERE, "no flags of known zones");
    PS_TRY(ps_values_check(&z->lower, "lower bounds", err));
    return ps_values_check(&z->upper, "upper bounds", err);
}

ps_status ps_zones_order(ps_zones *zones, uint8_t *known, int32_t claimed, int32_t *order,
                         ps_error *err) {
    *order = 0;
    PS_TRY(check(zones, err));
    bool holds = claimed == 1 || claimed == 2;
    int64_t last = -1;
    for (size_t k = 0; k < zones->n; k++) {
        int64_t i = (int64_t)k;
        bool null_page = zones->all_null && zones->all_null[k];
        if (!known[k] || null_page) {
            holds = holds && null_page;
            continue;
        }
        if (ps_value_is_nan(&zones->lower, i) || ps_value_is_nan(&zones->upper, i) ||
            ps_value_order(&zones->lower, i, &zones->upper, i) > 0) {
            known[k] = 0;
            holds = false;
            continue;
        }
        if (holds && last >= 0) {
            int lower = ps_value_order(&zones->lower, last, &zones->lower, i);
            int upper = ps_value_order(&zones->upper, last, &zones->upper, i);
            holds = claimed == 1 ? lower <= 0 && upper <= 0 : lower >= 0 && upper >= 0;
        }
        last = i;
    }
    if (holds) *order = claimed;
    return PS_OK;
}

bool ps_zones_nearest(const ps_zones *zones, int64_t *nearest) {
    size_t first = 0;
    while (first < zones->n && bounded(zones, first)) first++;
    if (first == zones->n) return false;
    for (size_t i = 0; i < zones->n; i++)
        nearest[i] = bounded(zones, i) ? (int64_t)i : i ? nearest[i - 1] : -1;
    return true;
}

static bool nan_passes(ps_op op, bool literal_is_nan, ps_nan nan) {
    if (op == PS_IS_NAN || op == PS_ALWAYS) return true;
    if (nan == PS_NAN_IEEE) return op == PS_NE;
    switch (op) { /* NaN is the largest value, and equal to itself */
    case PS_EQ:
    case PS_IN:
    case PS_LE: return literal_is_nan;
    case PS_NE:
    case PS_GT: return !literal_is_nan;
    case PS_GE: return true;
    default: return false;
    }
}

/* Numbers against NaN, and all that needs no bounds: true with *verdict set. */
static bool decided(ps_op op, bool literal_is_nan, ps_nan nan, uint8_t *verdict) {
    bool pass = op == PS_ALWAYS;
    if (literal_is_nan) {
        pass = op == PS_NE || (nan == PS_NAN_SPARK && (op == PS_LT || op == PS_LE));
    } else if (op != PS_ALWAYS && op != PS_NEVER && op != PS_IS_NAN) {
        return false;
    }
    *verdict = pass ? PS_MAY_TRUE : PS_MAY_FALSE;
    return true;
}

static void probe(const ps_zones *z, ps_op op, const ps_values *literals, ps_nan nan,
                  uint8_t *verdict) {
    bool is_float = ps_kind_is_float(z->lower.kind), ordered = z->order == 1 || z->order == 2;
    bool needs_bounds = false, nan_literal = false;
    uint8_t constant = 0;
    ps_values list = {0};

    if (op == PS_IN) {
        list = *literals;
        nan_literal = list.n && ps_value_is_nan(&list, list.n - 1); /* sorted: it is the last */
        list.n -= nan_literal;
        needs_bounds = list.n > 0;
        constant = PS_MAY_FALSE;
        if (needs_bounds && ordered && (uint64_t)list.n < z->n / 8) {
            in_ordered(z, &list, verdict);
        } else if (needs_bounds) {
            for (size_t i = 0; i < z->n; i++)
                if (bounded(z, i)) verdict[i] = in_verdict(z, i, &list);
        }
    } else if (op != PS_IS_NULL) {
        bool has_literal = op != PS_IS_NAN && op != PS_ALWAYS && op != PS_NEVER;
        nan_literal = has_literal && ps_value_is_nan(literals, 0);
        needs_bounds = !decided(op, nan_literal, nan, &constant);
    }
    if (needs_bounds && op == PS_PREFIX && literals->n > 1) {
        for (size_t i = 0; i < z->n; i++)
            if (bounded(z, i)) verdict[i] = prefixes_verdict(z, i, literals);
    } else if (needs_bounds && op != PS_IN) {
        uint8_t table[N_POSITIONS];
        for (int i = 0; i < N_POSITIONS; i++) table[i] = position_verdict(op, i);
        if (ordered) {
            fill_ordered(z, literals, op == PS_PREFIX, table, verdict);
        } else {
            positions(z, literals, op == PS_PREFIX, verdict);
            for (size_t i = 0; i < z->n; i++)
                verdict[i] = table[verdict[i] & (N_POSITIONS - 1)];
        }
    }

    uint8_t of_nan = nan_passes(op, nan_literal, nan) ? PS_MAY_TRUE : PS_MAY_FALSE;
    for (size_t i = 0; i < z->n; i++) {
        int held = groups(z, i, is_float);
        if (op == PS_IS_NULL) {
            verdict[i] = (uint8_t)((held & HAS_NULL ? PS_MAY_TRUE : 0) |
                                   (held & (HAS_NAN | HAS_NUMBER) ? PS_MAY_FALSE : 0));
            continue;
        }
        uint8_t of_number = !needs_bounds                      ? constant
                            : bounded(z, i) && !(held & DOUBT) ? verdict[i]
                                                               : (uint8_t)ANY;
        verdict[i] = (uint8_t)((held & HAS_NULL ? PS_MAY_NULL : 0) |
                               (held & HAS_NAN ? of_nan : 0) |
                               (held & HAS_NUMBER ? of_number : 0));
    }
}

ps_status ps_zones_probe(const ps_zones *zones, ps_op op, const ps_values *literals, ps_nan nan,
                         uint8_t *verdict, ps_error *err) {
    PS_TRY(check(zones, err));
    PS_TRY(ps_literals_check(literals, op, zones->lower.kind, err));
    probe(zones, op, literals, nan, verdict);
    return PS_OK;
}

ps_status ps_zones_probe_in(const ps_zones *zones, const ps_in *in, ps_nan nan,
                            uint8_t *verdict, ps_error *err) {
    PS_TRY(check(zones, err));
    PS_TRY(ps_literals_kind(&in->literals, zones->lower.kind, err));
    probe(zones, PS_IN, &in->literals, nan, verdict);
    return PS_OK;
}

size_t ps_zones_out_of_bounds(const ps_zones *zones, const ps_zones *whole, size_t i) {
    if (i >= whole->n || !bounded(whole, i) || whole->lower.kind != zones->lower.kind ||
        whole->lower.width != zones->lower.width)
        return SIZE_MAX;
    const int64_t at = (int64_t)i;
    for (size_t k = 0; k < zones->n; k++)
        if (bounded(zones, k) &&
            (ps_value_order(&zones->lower, (int64_t)k, &whole->upper, at) > 0 ||
             ps_value_order(&zones->upper, (int64_t)k, &whole->lower, at) < 0))
            return k;
    return SIZE_MAX;
}
