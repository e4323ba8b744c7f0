/* block.c - scattered rows: a block of a page is decoded as a whole and compacted by a mask, where going
 * from run to run would cost more. */
#include "leaf.h"

enum { LEAST_RUNS = 3, SPARSE_BLOCKS = 4 };

ps_status ps_block_take(ps_leaf *leaf, int64_t start, int64_t stop, int64_t *rows,
                        ps_error *err) {
    uint64_t mask[PS_BLOCK_WORDS], levels[PS_BLOCK_WORDS];
    uint64_t values[PS_BLOCK_WORDS + 1], validity[PS_BLOCK_WORDS + 2];
    const ps_selection *selection = &leaf->rows.selection;
    *rows = 0;
    const int64_t rest = stop - start;
    if (rest > PS_BLOCK) stop = start + PS_BLOCK;
    leaf->rows.evaluated = stop;
    size_t least = (size_t)(stop - start) / (leaf->flat.has_nulls
                                                 ? leaf->page.encoding->rows_per_run_nulls
                                                 : leaf->page.encoding->rows_per_run);
    if (least < LEAST_RUNS) least = LEAST_RUNS;
    size_t index = leaf->rows.runs.index;
    if (!selection->bitmap) { /* ranges tell at once */
        if (least > selection->n_ranges || index > selection->n_ranges - least ||
            selection->ranges[index + least - 1].start >= stop)
            return PS_OK;
    }
    ps_selection_words(selection, &index, start, stop - start, mask);
    if (!selection->bitmap &&
        leaf->rows.run.stop > start) { /* of ranges that touch, the cursor knows the last */
        const int64_t n = leaf->rows.run.stop < stop ? leaf->rows.run.stop - start
                                                     : stop - start;
        ps_bits_fill((uint8_t *)mask, 0, (size_t)n, true);
    }
    size_t n_words = ps_words_for((size_t)(stop - start));
    if (selection->bitmap && ps_words_runs(mask, n_words) < least) {
        /* likely the next blocks are like this one: it is cheaper not to count theirs */
        leaf->rows.evaluated =
            start + (rest < SPARSE_BLOCKS * PS_BLOCK ? rest : SPARSE_BLOCKS * PS_BLOCK);
        return PS_OK;
    }

    ps_block block = {.rows = ps_words_end(mask, n_words)};
    n_words = ps_words_for(block.rows);
    block.chosen = ps_words_count(mask, n_words);
    if ((int64_t)block.chosen > leaf->out.max_rows - leaf->out.rows) return PS_OK;
    block.values = block.rows, block.kept = block.chosen, block.mask = mask;
    if (leaf->flat.has_nulls) {
        ps_words_load(levels, leaf->flat.validity.data, (size_t)leaf->page.row, block.rows);
        block.values = ps_words_compress(values, mask, levels, n_words);
        ps_words_compress(validity, levels, mask, n_words);
        block.kept = ps_words_count(values, ps_words_for(block.values));
        block.mask = values;
    }
    block.end = ps_words_end(block.mask, ps_words_for(block.values));

    bool fit;
    PS_TRY(ps_append_block(leaf, &block, validity, &fit, err));
    if (!fit) return PS_OK; /* run by run, as many as fit */
    PS_TRY(ps_output_add_validity(leaf, (const uint8_t *)validity, 0, (int64_t)block.chosen,
                                  (int64_t)block.kept, err));
    leaf->page.row += (int64_t)block.rows;
    leaf->page.value += (int64_t)block.values;
    leaf->out.rows += (int64_t)block.chosen;
    *rows = (int64_t)block.rows;
    return PS_OK;
}
