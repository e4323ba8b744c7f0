from libc.stdint cimport uint8_t, uint32_t


cdef int codec_of(str name) except -2  # 0: none, -1: not one of the core's own
cdef int can_hold(size_t length, size_t size) except -1
cdef int inflate(int codec, const uint8_t *data, size_t length, uint8_t *out, size_t size, bint exact) except -1
