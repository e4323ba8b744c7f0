"""What several modules use of pageseek.h; the contracts stand there."""
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t


cdef extern from "busy.h" nogil:
    ctypedef int ps_busy
    bint ps_busy_enter(ps_busy *)
    void ps_busy_leave(ps_busy *)

cdef extern from "pageseek.h" nogil:
    ctypedef enum ps_status:
        PS_OK
        PS_CORRUPT
        PS_LIMIT
        PS_NOMEM
        PS_INVALID
        PS_MISMATCH
    ctypedef struct ps_error:
        uint64_t offset
        char message[200]

    ctypedef struct ps_range:
        int64_t start, stop
    ctypedef struct ps_selection:
        const ps_range *ranges
        size_t n_ranges
        const uint8_t *bitmap
        int64_t base, length

    void *ps_buffer_new(size_t size)
    void ps_buffer_free(void *buffer, size_t size)
    ctypedef struct ps_shared:
        pass
    ps_shared ps_shared_own()
    void ps_shared_use(const ps_shared *)

    ctypedef struct ps_nesting_level:
        int32_t type
        int16_t def_level, rep_level
    ctypedef struct ps_leaf_spec:
        int32_t physical, type_length, kind, width, unit, utf8, lsb_levels, max_def, max_rep, levels_only, passes
        int32_t n_nesting_levels
        int64_t range
        const ps_nesting_level *nesting_levels
        size_t max_output
        int64_t likely_rows

    ctypedef struct ps_page_header:
        int64_t header_length, type, uncompressed_size, compressed_size, crc, num_values, encoding
        int64_t def_encoding, rep_encoding, num_nulls, num_rows, def_length, rep_length, is_compressed
    ps_status ps_page_header_read(const uint8_t *, size_t, ps_page_header *, ps_error *)

    uint32_t ps_crc32(uint32_t crc, const uint8_t *data, size_t length)
    ps_status ps_snappy_decode(const uint8_t *, size_t, uint8_t *, size_t, bint, ps_error *)
    ps_status ps_lz4_decode(const uint8_t *, size_t, uint8_t *, size_t, bint, ps_error *)
    ps_status ps_lz4_hadoop_decode(const uint8_t *, size_t, uint8_t *, size_t, bint, ps_error *)
    ps_status ps_convert_check(const ps_leaf_spec *, ps_error *)
    ps_status ps_convert_plain(const ps_leaf_spec *, const uint8_t *, size_t, const int64_t *, const int64_t *, int64_t,
                               uint8_t *, void *, uint8_t *, ps_error *)
