"""What other modules cimport of search.pyx: values, and tests of them. The contracts stand in ps_values.h and ps_leaf.h."""
from libc.stdint cimport int32_t, int64_t, uint8_t


cdef extern from "pageseek.h" nogil:
    ctypedef enum ps_op:
        PS_EQ, PS_NE, PS_LT, PS_LE, PS_GT, PS_GE
        PS_IN, PS_PREFIX, PS_IS_NULL, PS_IS_NAN, PS_ALWAYS, PS_NEVER
    ctypedef enum ps_nan:
        PS_NAN_IEEE, PS_NAN_SPARK
    ctypedef struct ps_values:
        int32_t kind, width
        int64_t n
        const uint8_t *validity
        const uint8_t *values
        size_t values_size
        const void *offsets
    ctypedef struct ps_in:
        ps_values literals
    ctypedef struct ps_row_test:
        ps_op op
        bint negate
        ps_nan nan
        ps_values literals
        const ps_in *in_list "in"


cdef class RowTests:
    cdef ps_row_test *tests
    cdef size_t n
    cdef int32_t kind  # of the values
    cdef readonly bint keeps
    cdef list held
