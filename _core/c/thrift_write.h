/* thrift_write.h - the Thrift compact protocol, written into memory that grows. Internal.
 *
 * Every function fails with PS_NOMEM, or with PS_LIMIT where the result would be larger than the writer's cap;
 * what was written before is then still there, to be cleared.
 * https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md */
#ifndef PAGESEEK_THRIFT_WRITE_H
#define PAGESEEK_THRIFT_WRITE_H

#include "thrift.h"

PS_INLINE ps_writer ps_writer_open(size_t cap, ps_error *err) {
    return (ps_writer){.cap = cap, .err = err};
}

ps_status ps_write_bytes(ps_writer *w, const void *data, size_t n);
ps_status ps_write_varint(ps_writer *w, uint64_t v);
ps_status ps_write_i64(ps_writer *w, int64_t v);
/* Length and bytes of a binary. */
ps_status ps_write_binary(ps_writer *w, const void *data, size_t n);
/* The header of a field; *last is the id of the one before, 0 at first. A bool's value is its type. */
ps_status ps_write_field(ps_writer *w, int32_t *last, int32_t id, int type);
ps_status ps_write_list(ps_writer *w, int element, size_t n);
ps_status ps_write_stop(ps_writer *w);

#endif
