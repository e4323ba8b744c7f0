"""convert.pyx for other modules: a leaf type as ps_leaf_spec."""
from pageseek._core.header cimport ps_leaf_spec


cdef int fill_spec(ps_leaf_spec *spec, tuple form, size_t max_output) except -1
