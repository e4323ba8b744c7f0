/* UTF-8 many bytes at a time, against one sequence after the other. Build with -fsanitize=address,undefined: all text lies at the
 * end of its block.
 *
 *   cc -std=c11 -g -fsanitize=address,undefined test_utf8.c ../c/base.c */
#include <stdlib.h>

#include "../c/utf8.c"
#include "check.h"

/* the ends of every range that a table or a lead tells from another */
static const uint8_t critical[] = {0x00, 0x61, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf,
                                   0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee,
                                   0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
enum { CRITICAL = sizeof critical };

static ps_utf8_scanner scanners[3];
static size_t n_scanners;

static ps_utf8 oracle(const uint8_t *data, size_t length) {
    bool ascii = true;
    for (size_t i = 0; i < length; i++) ascii &= data[i] < 0x80;
    if (ps_utf8_check(data, length, NULL) != PS_OK) return PS_UTF8_BAD;
    return ascii ? PS_UTF8_ASCII : PS_UTF8_VALID;
}

/* The next sequence of n critical bytes; false after the last one. */
static bool next_sequence(uint8_t *which, uint8_t *bytes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        which[i] = (uint8_t)((which[i] + 1) % CRITICAL);
        bytes[i] = critical[which[i]];
        if (which[i]) return true;
    }
    return false;
}

/* Text to put a sequence into, of characters of `width` bytes from `from` on, and ASCII before. */
static void fill(uint8_t *text, size_t from, size_t n, size_t width) {
    static const char *const characters[] = {"", "a", "\xc3\xa9", "\xe2\x82\xac",
                                             "\xf0\x9f\x98\x80"};
    memset(text, 'a', n);
    for (size_t i = from; width > 1 && i + width <= n; i += width)
        memcpy(text + i, characters[width], width);
}

/* Every sequence at every place in and around a vector, in ASCII and behind characters of each width, at the end of the text and
 * with more behind it. */
static void every_sequence(size_t n, const size_t *places, size_t n_places) {
    int64_t wrong = 0;
    for (size_t place = 0; place < n_places; place++) {
        for (size_t width = 1; width <= 4; width++) {
            for (size_t behind = 0; behind <= 37; behind += 37) {
                const size_t at = places[place], length = at + n + behind;
                uint8_t *text = malloc(length ? length : 1), which[4] = {0}, bytes[4];
                fill(text, at % width, at, width);
                memset(text + at + n, 'z', behind);
                memset(bytes, critical[0], sizeof bytes);
                do {
                    memcpy(text + at, bytes, n);
                    /* only the sequence differs: what the oracle says of it holds for all */
                    const ps_utf8 want = oracle(text, length);
                    for (size_t i = 0; i < n_scanners; i++)
                        wrong += scanners[i].scan(text, length) != want;
                } while (next_sequence(which, bytes, n));
                free(text);
            }
        }
    }
    CHECK(wrong == 0);
}

static void sequences(void) {
    size_t all[140];
    for (size_t i = 0; i < 140; i++) all[i] = i;
    for (size_t n = 0; n <= 2; n++) every_sequence(n, all, 140);
    const size_t three[] = {0,  1,  13, 14, 15, 16,  29,  30, 31,
                            32, 61, 62, 63, 64, 125, 127, 128};
    every_sequence(3, three, sizeof three / sizeof *three);
    const size_t four[] = {0, 13, 14, 15, 30, 63, 126};
    every_sequence(4, four, sizeof four / sizeof *four);
}

/* Any two bytes, at the start of text and behind leads that claim them or the next one. */
static void pairs(void) {
    static const char *const leads[] = {"", "\xc3", "\xe1", "\xf1", "\xe1\x80", "\xf1\x80"};
    int64_t wrong = 0;
    for (size_t lead = 0; lead < sizeof leads / sizeof *leads; lead++) {
        for (size_t before = 28; before <= 32; before++) {
            const size_t at = before + strlen(leads[lead]), length = at + 2 + 40;
            uint8_t *text = malloc(length);
            memset(text, 'a', length);
            memcpy(text + before, leads[lead], at - before);
            for (unsigned both = 0; both < 1 << 16; both++) {
                text[at] = (uint8_t)both, text[at + 1] = (uint8_t)(both >> 8);
                const ps_utf8 want = oracle(text, length);
                for (size_t i = 0; i < n_scanners; i++)
                    wrong += scanners[i].scan(text, length) != want;
            }
            free(text);
        }
    }
    CHECK(wrong == 0);
}

/* A fault in otherwise good text is found wherever it lies, and good text is good at every length. */
static void one_byte_changed(void) {
    int64_t wrong = 0;
    for (size_t width = 1; width <= 4; width++) {
        for (size_t length = 0; length <= 300; length++) {
            uint8_t *text = malloc(length ? length : 1);
            fill(text, 0, length, width);
            for (size_t i = 0; i < n_scanners; i++)
                wrong += scanners[i].scan(text, length) != oracle(text, length);
            for (size_t at = 0; at < length; at++) {
                const uint8_t was = text[at];
                for (size_t k = 0; k < CRITICAL; k += 3) {
                    text[at] = critical[k];
                    const ps_utf8 want = oracle(text, length);
                    for (size_t i = 0; i < n_scanners; i++)
                        wrong += scanners[i].scan(text, length) != want;
                }
                text[at] = was;
            }
            free(text);
        }
    }
    CHECK(wrong == 0);
}

/* Strings that are good only together are bad: each sequence is cut at every set of places, its ends among them. */
static void cut(size_t n, size_t lead, int64_t *wrong, int64_t *both) {
    const size_t length = lead + n + 5;
    uint8_t *text = malloc(length), which[4] = {0}, bytes[4];
    memset(text, 'a', length);
    memset(bytes, critical[0], sizeof bytes);
    do {
        memcpy(text + lead, bytes, n);
        for (unsigned set = 0; set < 1u << (n + 1); set++) {
            int32_t narrow[9] = {0};
            int64_t wide[9] = {0}, strings = 0;
            bool want = true;
            for (size_t i = 0; i <= n; i++)
                if (set >> i & 1) narrow[++strings] = (int32_t)(lead + i);
            narrow[++strings] = (int32_t)length;
            narrow[++strings] = (int32_t)length; /* an empty one at the end */
            for (int64_t i = 0; i < strings; i++) {
                wide[i + 1] = narrow[i + 1];
                want &= ps_utf8_check(text + narrow[i], (size_t)(narrow[i + 1] - narrow[i]),
                                      NULL) == PS_OK;
            }
            for (size_t i = 0; i < n_scanners; i++) {
                chosen = scanners[i];
                *wrong += ps_utf8_strings_valid(text, narrow, false, strings) != want;
                *wrong += ps_utf8_strings_valid(text, wide, true, strings) != want;
            }
            both[want]++;
        }
    } while (next_sequence(which, bytes, n));
    free(text);
}

static void cuts(void) {
    int64_t wrong = 0, both[2] = {0, 0};
    for (size_t lead = 0; lead <= 66; lead++)
        for (size_t n = 1; n <= 2; n++) cut(n, lead, &wrong, both);
    cut(3, 0, &wrong, both), cut(3, 31, &wrong, both), cut(3, 62, &wrong, both);
    cut(4, 30, &wrong, both);
    CHECK(wrong == 0);
    CHECK(both[0] > 0 && both[1] > 0);
}

static void empty_strings(void) {
    const uint8_t *text = (const uint8_t *)"\xc3\xa9";
    const int32_t around[] = {0, 0, 0, 2, 2, 2}, inside[] = {0, 1, 1, 2};
    CHECK(ps_utf8_strings_valid(NULL, (int32_t[]){0, 0, 0}, false, 2));
    CHECK(ps_utf8_strings_valid(NULL, (int64_t[]){0}, true, 0));
    CHECK(ps_utf8_strings_valid(text, around, false, 5));
    CHECK(!ps_utf8_strings_valid(text, inside, false, 3));
}

static void chosen_by_name(void) {
    CHECK(strcmp(ps_utf8_choose(true), "plain") == 0 && chosen.scan == scanners[0].scan);
    const ps_utf8_scanner best = scanners[n_scanners - 1];
    CHECK(strcmp(ps_utf8_choose(false), best.name) == 0 && chosen.scan == best.scan);
}

int main(void) {
    n_scanners = ps_utf8_scanners(scanners);
    for (size_t i = 0; i < n_scanners; i++) printf("scan: %s\n", scanners[i].name);
    sequences();
    pairs();
    one_byte_changed();
    cuts();
    empty_strings();
    chosen_by_name();
    return check_report();
}
