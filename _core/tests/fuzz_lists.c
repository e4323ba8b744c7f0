/* Any bytes as a list of different values: what is read of it lies in it, and it can be evaluated. */
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    ps_error err;
    ps_list list;
    size_t groups = length < 4 ? 0 : data[0] | (size_t)data[1] << 8;
    if (ps_list_read(data, length, groups, &list, &err) != PS_OK) {
        touch_error(&err);
        return 0;
    }
    size_t n = list.n_values, space = n ? n : 1;
    require(list.n_groups == groups && n <= length && list.values_size <= length);
    int64_t *places = malloc(2 * space * sizeof *places);
    uint8_t *passes = malloc(space + groups), *bits = malloc(space),
            *verdicts = malloc(2 * groups + 1);
    int64_t base = list.values - data;
    ps_list_places(&list, base, places, places + n);
    for (size_t i = 0; i < n; i++) {
        touch(data, length, places[i], places[n + i]);
        passes[i] = (uint8_t)(i % 3 == 0);
    }
    ps_list_evaluate(&list, passes, groups & 1, groups & 2, groups & 4, bits, verdicts,
                     verdicts + groups);
    ps_list_exact(&list, passes);
    for (size_t g = 0; g < groups; g++) /* who has no value at all is in both */
        require(verdicts[g] <= 1 && verdicts[groups + g] <= 1);
    free(places), free(passes), free(bits), free(verdicts);
    return 0;
}
