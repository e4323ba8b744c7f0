"""status.pyx for other modules: a status as an exception."""
from pageseek._core.header cimport ps_error, ps_status


cdef int check(ps_status status, ps_error *err) except -1
