/* Any bytes as a list of structs: the quick skip of similar structs ends where the careful one does. */
#include "../c/thrift.h"
#include "touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
    static ps_layouts known;
    uint8_t layouts[3] = {0, 1, PS_LAYOUTS};
    ps_error err[2];
    ps_thrift quick = {data, data, data + length, &err[0], NULL};
    ps_thrift careful = {data, data, data + length, &err[1], NULL};
    known.n = 0;
    for (size_t i = 0; quick.p < quick.end; i++) {
        ps_status status = ps_thrift_skip_similar(&quick, &known, &layouts[i % 3]);
        require(status == ps_thrift_skip_carefully(&careful, PS_T_STRUCT));
        if (status != PS_OK) {
            require(err[0].offset == err[1].offset);
            require(strcmp(err[0].message, err[1].message) == 0);
            touch_error(&err[0]);
            return 0;
        }
        require(quick.p == careful.p);
    }
    return 0;
}
