/* metadata.h - functions that the files which read metadata share. Internal. */
#ifndef PAGESEEK_METADATA_H
#define PAGESEEK_METADATA_H

#include "thrift.h"

/* Statistics of parquet.thrift, into a ps_statistics. */
extern const ps_struct_spec ps_statistics_spec;

PS_INLINE ps_thrift ps_thrift_open(const uint8_t *data, size_t length, void *context,
                                   ps_error *err) {
    ps_thrift t = {data, data, data + length, err, context};
    return t;
}

#endif
