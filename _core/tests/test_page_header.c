/* Tests of page headers. */
#include "check.h"
#include "thrift_writer.h"

static ps_error err;

static void data_page(bytes *b, int type, int header, int64_t size, int64_t values) {
    b->n = 0;
    integer(b, 1, PS_T_I32, type), integer(b, 1, PS_T_I32, size), integer(b, 1, PS_T_I32, 90);
    integer(b, 1, PS_T_I32, -7);
    if (header) {
        field(b, header - 4, PS_T_STRUCT);
        integer(b, 1, PS_T_I32, values);
        if (header == 8) integer(b, 1, PS_T_I32, -1), integer(b, 1, PS_T_I32, 3);
        integer(b, 1, PS_T_I32, 8);
        if (header != 7) integer(b, 1, PS_T_I32, 3), integer(b, 1, PS_T_I32, 4);
        if (header == 5) field(b, 1, PS_T_STRUCT), statistics(b);
        byte(b, 0);
    }
    byte(b, 0);
}

static ps_status page_header(const bytes *b, size_t n, ps_page_header *h) {
    copy c = exact(b->at, n);
    ps_status status = ps_page_header_read(c.data, n, h, &err);
    free(c.block);
    return status;
}

static void test_page_header(void) {
    static bytes b;
    ps_page_header h;
    data_page(&b, 0, 5, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.header_length, b.n);
    CHECK_INT(h.uncompressed_size, 100);
    CHECK_INT(h.compressed_size, 90);
    CHECK_INT(h.crc, -7);
    CHECK_INT(h.num_values, 50);
    CHECK_INT(h.encoding, 8);
    CHECK_INT(h.def_encoding, 3);
    CHECK_INT(h.rep_encoding, 4);
    CHECK_INT(h.num_nulls, PS_ABSENT);
    CHECK_INT(h.statistics.null_count, 7);
    for (size_t n = 0; n < b.n; n++) CHECK_INT(page_header(&b, n, &h), PS_TRUNCATED);
    data_page(&b, 3, 8, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.num_nulls, PS_ABSENT); /* written as -1 */
    CHECK_INT(h.num_rows, 3);
    CHECK_INT(h.def_length, 3);
    CHECK_INT(h.rep_length, 4);
    CHECK_INT(h.is_compressed, 1);
    CHECK_INT(h.statistics.present, 0);
    data_page(&b, 2, 7, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.is_sorted, PS_ABSENT);
    data_page(&b, 1, 0, 100, 50); /* an index page, a page of the future */
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    data_page(&b, 9, 0, 100, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_OK);
    CHECK_INT(h.type, 9);
    for (int type = 0; type < 4; type++) {
        if (type == 1) continue;
        data_page(&b, type, 0, 100, 50);
        CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
        data_page(&b, type, type == 2 ? 5 : 7, 100, 50);
        CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    }
    data_page(&b, 0, 5, -1, 50);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    data_page(&b, 0, 5, 100, -50);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT);
    data_page(&b, 0, 5, 100, 50);
    b.n--;
    field(&b, 2, PS_T_STRUCT), integer(&b, 1, PS_T_I32, 1), integer(&b, 1, PS_T_I32, 1),
        byte(&b, 0), byte(&b, 0);
    CHECK_INT(page_header(&b, b.n, &h), PS_CORRUPT); /* headers of two types */
}

int main(void) {
    test_page_header();
    return check_report();
}
