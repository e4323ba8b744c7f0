/* Tests of directories of indexes, in many files. */
#include "check.h"
#include "pageseek.h"

#include <stdlib.h>

enum { FIGURE = 8, LONGEST = 4096, SPACE = 1 << 10, BODY = 24 };

static ps_error err;
static ps_entry_form form;

static void set_form(void) {
    static const char *const parts[PS_ENTRY_PARTS] = {
        "{\"base\":",       "{\"at\":", ",\"n\":", ",\"of\":\"a\",\"sum\":\"",
        "\",\"chunks\":\"", "\"}"};
    for (int i = 0; i < PS_ENTRY_PARTS; i++) {
        form.parts[i] = (const uint8_t *)parts[i];
        form.lengths[i] = strlen(parts[i]);
    }
    form.longest = LONGEST;
}

/* A file of `size` bytes, the last `kept` of which are at hand, with the footer at 100. */
typedef struct file {
    char value[SPACE];
    uint8_t data[200];
    size_t kept;
} file;

static ps_entry find(const file *f) {
    size_t length = strlen(f->value);
    uint8_t *value = malloc(length + 1),
            *tail = malloc(f->kept + 1); /* a read behind them is seen */
    uint8_t *values = realloc(value, length ? length : 1),
            *tails = realloc(tail, f->kept ? f->kept : 1);
    memcpy(values, f->value, length);
    memcpy(tails, f->data + sizeof f->data - f->kept, f->kept);
    static const uint8_t figures[3 * FIGURE] = {1, 2, 3};
    ps_entry_file at = {.value_length = (int64_t)length,
                        .tail_length = (int64_t)f->kept,
                        .size = sizeof f->data,
                        .footer_start = 100,
                        .first_group = 1,
                        .num_groups = 2};
    ps_entry out = {.state = -1};
    CHECK_INT(ps_entries_find(values, length, tails, f->kept, figures, sizeof figures, FIGURE,
                              &form, &at, 1, &out, &err),
              PS_OK);
    free(values), free(tails);
    return out;
}

static uint64_t of_figures(void) {
    static const uint8_t figures[2 * FIGURE] = {0};
    return ps_xxh64(figures, sizeof figures);
}

static void put_body(file *f, size_t at) {
    uint64_t chunks = of_figures();
    memcpy(f->data + at, "PSX1\0\0\0\0", 8);
    memcpy(f->data + at + 8, &chunks, 8);
    memset(f->data + at + 16, 'x', BODY - 16);
}

static void say(file *f, const char *at, size_t n, uint64_t sum, uint64_t chunks) {
    snprintf(
        f->value, SPACE,
        "{\"base\":7,\"x\":[{\"at\":1},{\"at\":%s,\"n\":%zu,\"of\":\"a\",\"sum\":\"%016llx\","
        "\"chunks\":\"%016llx\"}]}",
        at, n, (unsigned long long)sum, (unsigned long long)chunks);
}

static void test_states(void) {
    file f = {.kept = 150};
    put_body(&f, 60);
    uint64_t sum = ps_xxh64(f.data + 60, BODY), chunks = of_figures();
    say(&f, "60", BODY, sum, chunks);
    ps_entry found = find(&f);
    CHECK_INT(found.state, PS_ENTRY_SOUND);
    CHECK(found.offset == 60 && found.length == BODY && found.checksum == sum &&
          found.chunks == chunks);
    f.kept = 139; /* all but its first byte */
    CHECK_INT(find(&f).state, PS_ENTRY_FAR);
    f.kept = 140;
    CHECK_INT(find(&f).state, PS_ENTRY_SOUND);
    for (size_t i = 60; i < 60 + BODY; i++) {
        f.data[i] ^= 1;
        CHECK_INT(find(&f).state, PS_ENTRY_DOUBTFUL);
        f.data[i] ^= 1;
    }
    say(&f, "60", BODY, sum, chunks ^ 1);
    CHECK_INT(find(&f).state, PS_ENTRY_DOUBTFUL);
    f.data[68] ^= 1; /* it says so itself, and its sum is right */
    say(&f, "60", BODY, ps_xxh64(f.data + 60, BODY), chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_DOUBTFUL);
    f.data[68] ^= 1;
    say(&f, "60", 15, ps_xxh64(f.data + 60, 15), chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_DOUBTFUL);
    say(&f, "60", 40, 0, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_DOUBTFUL); /* up to the footer */
    say(&f, "60", 41, 0, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_NONE);
    say(&f, "3", BODY, sum, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_NONE);
    say(&f, "4", BODY, sum, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_FAR);
    say(&f, "60", 0, sum, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_NONE);
    say(&f, "999999999999999999", BODY, sum, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_NONE);
    say(&f, "0999999999999999999", BODY, sum, chunks); /* 19 digits */
    CHECK_INT(find(&f).state, PS_ENTRY_UNREAD);
    say(&f, "", BODY, sum, chunks);
    CHECK_INT(find(&f).state, PS_ENTRY_UNREAD);
}

/* Cut short or altered at any place it is not of the form, unless a number is another one. */
static void test_every_byte(void) {
    file f = {.kept = 0}, other;
    say(&f, "60", BODY, 0x0123456789abcdef, of_figures());
    CHECK_INT(find(&f).state, PS_ENTRY_FAR);
    size_t n = strlen(f.value), entry = (size_t)(strstr(f.value, ",\"n\"") - f.value);
    for (size_t i = 0; i < n; i++) {
        other = f;
        other.value[i] = '\0';
        CHECK_INT(find(&other).state, i + 2 < n ? PS_ENTRY_UNREAD : PS_ENTRY_FAR);
        other.value[i] = '#';
        bool matters = i < strlen("{\"base\":7,") || (i >= entry && i + 2 < n);
        if (matters) CHECK_INT(find(&other).state, PS_ENTRY_UNREAD);
    }
}

static void test_the_last_counts(void) {
    file f = {.kept = 0};
    char *at = f.value + snprintf(f.value, SPACE, "{\"base\":7,");
    for (int i = 0; i < 3; i++)
        at += snprintf(at, 200,
                       "{\"at\":%d,\"n\":5,\"of\":\"a\",\"sum\":\"0000000000000000\","
                       "\"chunks\":\"ffffffffffffffff\"}",
                       10 + i);
    CHECK_INT(find(&f).offset, 12);
    CHECK(find(&f).chunks == UINT64_MAX);
    memcpy(at - 3, "F", 1); /* in small letters only */
    CHECK_INT(find(&f).offset, 11);
    form.longest = strlen(f.value) - 1;
    CHECK_INT(find(&f).state, PS_ENTRY_UNREAD);
    form.longest = LONGEST;
}

int main(void) {
    set_form();
    test_states();
    test_every_byte();
    test_the_last_counts();
    return check_report();
}
