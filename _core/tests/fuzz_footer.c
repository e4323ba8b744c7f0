/* Any bytes as a footer: read it, read all its chunks, touch every range that came out. */
#include "similar_footers.h"
#include "touch.h"

/* Footers are like themselves, and what is read of them together is what is read of each. */
static void read_similar(const uint8_t *data, size_t length, const ps_footer *f) {
    uint64_t at[] = {0, length}, leaf[] = {0};
    size_t done, failed;
    int64_t groups[1], stored[2 * KEYS], rows[4];
    ps_chunk chunks[4], c;
    ps_similar_footer like = similar(data, f);
    require(ps_footers_read(data, length, at, 1, &like, leaf, 1, 1 << 24, 4, &done, groups,
                            stored, rows, chunks, NULL) == PS_OK);
    require(done == 1 && groups[0] >= -1 && groups[0] <= 4);
    for (size_t k = 0; groups[0] >= 0 && k < KEYS; k++)
        touch(data, length, stored[2 * k], stored[2 * k + 1]);
    for (int64_t i = 0; i < groups[0]; i++) {
        require(ps_chunks_read(data, length, &f->chunk_offsets[(size_t)i * f->n_leaves], 1, &c,
                               &failed, NULL) == PS_OK);
        require(memcmp(&c, &chunks[i], sizeof c) == 0);
        require(rows[i] == f->row_groups[i].num_rows);
    }
}

/* A footer with other places for the indexes of all its chunks is the footer that it was, but for these. */
static void edit(const uint8_t *data, size_t length, const ps_footer *f) {
    static const uint8_t text[] = "keyvalue";
    static const int64_t pair[] = {0, 3, 3, 5};
    const size_t n = f->n_row_groups * f->n_leaves;
    int64_t *places = malloc((n ? n : 1) * PS_CHUNK_PLACES * sizeof *places);
    ps_footer_edit wanted = {.places = places,
                             .n_chunks = n,
                             .text = text,
                             .text_length = 8,
                             .dropped = pair,
                             .n_dropped = 1,
                             .added = pair,
                             .n_added = 1};
    ps_writer w = {.cap = 1 << 24};
    ps_footer g;
    ps_error err;
    require(places != NULL);
    for (size_t i = 0; i < n * PS_CHUNK_PLACES; i++)
        places[i] = i % 7 == 0 ? PS_ABSENT : i % 5 == 0 ? -1 : (int64_t)(i % 11 + 4);
    if (ps_footer_edited(data, length, &wanted, &w, &err) != PS_OK) {
        touch_error(&err);
    } else {
        require(ps_footer_read(w.data, w.size, 1 << 26, &g, &err) == PS_OK);
        require(g.n_row_groups == f->n_row_groups && g.n_leaves == f->n_leaves);
        require(g.num_rows == f->num_rows && g.n_column_orders == f->n_column_orders);
        require(g.n_schema == f->n_schema && g.n_key_values >= 1);
        for (size_t i = 0; i < n; i++) {
            size_t failed;
            ps_chunk a, b;
            if (ps_chunks_read(data, length, &f->chunk_offsets[i], 1, &a, &failed, &err) !=
                PS_OK)
                continue;
            require(ps_chunks_read(w.data, w.size, &g.chunk_offsets[i], 1, &b, &failed, &err) ==
                    PS_OK);
            const int64_t *p = places + i * PS_CHUNK_PLACES;
            const int64_t old[] = {a.offset_index_offset, a.offset_index_length,
                                   a.column_index_offset, a.column_index_length,
                                   a.bloom_filter_offset, a.bloom_filter_length};
            const int64_t new[] = {b.offset_index_offset, b.offset_index_length,
                                   b.column_index_offset, b.column_index_length,
                                   b.bloom_filter_offset, b.bloom_filter_length};
            for (int k = 0; k < PS_CHUNK_PLACES; k++)
                require(new[k] == (p[k] == PS_ABSENT ? old[k] : p[k] == -1 ? PS_ABSENT : p[k]));
            require(a.num_values == b.num_values && a.encodings == b.encodings);
            require(a.data_page_offset == b.data_page_offset && a.codec == b.codec);
            require(a.statistics.null_count == b.statistics.null_count);
        }
        ps_footer_clear(&g);
    }
    ps_writer_clear(&w);
    free(places);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_footer f;
    ps_error err;
    if (ps_footer_read(data, length, 1 << 24, &f, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    touch(data, length, f.created_by_offset, f.created_by_length);
    for (size_t i = 0; i < f.n_schema; i++)
        touch(data, length, f.schema[i].name_offset, f.schema[i].name_length);
    for (size_t i = 0; i < 2 * f.n_key_values; i++)
        touch(data, length, f.key_values[2 * i], f.key_values[2 * i + 1]);
    for (size_t i = 0; i < f.n_column_orders; i++) require(f.column_orders[i] >= 0);
    for (size_t i = 0; i < f.n_row_groups; i++)
        touch(data, length, f.row_groups[i].offset, f.row_groups[i].length);
    for (size_t i = 0; i < f.n_row_groups * f.n_leaves; i++) {
        ps_chunk c;
        size_t failed = 1;
        if (ps_chunks_read(data, length, &f.chunk_offsets[i], 1, &c, &failed, &err) != PS_OK) {
            require(failed == 0);
            touch_error(&err);
            continue;
        }
        /* the walk of the row group and the decoder agree on where a chunk ends */
        if ((i + 1) % f.n_leaves) require((uint64_t)c.end == f.chunk_offsets[i + 1]);
        touch(data, length, c.file_path_offset, c.file_path_length);
        touch_statistics(data, length, &c.statistics);
    }
    read_similar(data, length, &f);
    edit(data, length, &f);
    ps_footer_clear(&f);
    return 0;
}
