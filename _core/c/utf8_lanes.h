/* utf8_lanes.h - the scan of utf8.c for one width of vectors; it is included once for each. The table lookups are the idea of
 * Keiser and Lemire, "Validating UTF-8 in less than one instruction per byte" (2021).
 *
 * The includer defines LANES (bytes of a vector), TARGET (the attribute of functions that use it), VEC (its type), NAME(x), and
 * LOAD SPLAT TABLE LOOKUP AND OR XOR NIBBLE DROP BEFORE NEGATIVE ZERO, all of which are undefined here at the end. */

/* What is wrong with each byte, given the three before it, of which `last` has those that lie in front of `now`. */
TARGET static VEC NAME(faults)(VEC now, VEC last) {
    const VEC one = BEFORE(now, last, 1), two = BEFORE(now, last, 2),
              three = BEFORE(now, last, 3);
    const VEC high = LOOKUP(TABLE(by_high), NIBBLE(one)),
              low = LOOKUP(TABLE(by_low), AND(one, SPLAT(0x0f))),
              next = LOOKUP(TABLE(by_next), NIBBLE(now));
    /* leads of three bytes claim the second byte behind them, leads of four the third as well */
    const VEC claimed = AND(OR(DROP(two, SPLAT(0xe0 - 0x80)), DROP(three, SPLAT(0xf0 - 0x80))),
                            SPLAT(MORE));
    return XOR(AND(AND(high, low), next), claimed);
}

TARGET static ps_utf8 NAME(scan)(const uint8_t *data, size_t length) {
    uint8_t end[4 * LANES] = {0};
    /* a lead in the last three bytes whose sequence goes on behind them is more than this */
    uint8_t complete[LANES];
    memset(complete, 0xff, sizeof complete);
    complete[LANES - 3] = 0xef, complete[LANES - 2] = 0xdf, complete[LANES - 1] = 0xbf;
    const VEC most = LOAD(complete);
    VEC last = SPLAT(0), bad = SPLAT(0);
    bool ascii = true;
    for (bool more = true; more; data += 4 * LANES, length -= 4 * LANES) {
        more = length >= 4 * LANES;
        if (!more) { /* zeros behind the end show a sequence that it cuts */
            if (length) memcpy(end, data, length);
            data = end, length = 4 * LANES;
        }
        const VEC a = LOAD(data), b = LOAD(data + LANES), c = LOAD(data + 2 * LANES),
                  d = LOAD(data + 3 * LANES);
        if (!NEGATIVE(OR(OR(a, b), OR(c, d)))) {
            bad = OR(bad, DROP(last, most));
            last = SPLAT(0);
            continue;
        }
        ascii = false;
        bad = OR(bad, OR(NAME(faults)(a, last), NAME(faults)(b, a)));
        bad = OR(bad, OR(NAME(faults)(c, b), NAME(faults)(d, c)));
        last = d;
        if (!ZERO(bad)) return PS_UTF8_BAD;
    }
    if (!ZERO(bad)) return PS_UTF8_BAD;
    return ascii ? PS_UTF8_ASCII : PS_UTF8_VALID;
}

#undef LANES
#undef TARGET
#undef VEC
#undef NAME
#undef LOAD
#undef SPLAT
#undef TABLE
#undef LOOKUP
#undef AND
#undef OR
#undef XOR
#undef NIBBLE
#undef DROP
#undef BEFORE
#undef NEGATIVE
#undef ZERO
