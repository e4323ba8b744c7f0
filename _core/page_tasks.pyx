# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Pages of several leaves, read by one call on several threads."""
from pageseek._core.leaf cimport (
    DICTIONARY_WANTED, PS_TASK_DICTIONARY, PS_TASK_DONE, PS_TASK_THREADS, LeafBuffers, ps_page_task, run_page_tasks,
)

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint8_t

PARALLEL = bool(PS_TASK_THREADS)  # whether `read_pages` can use several threads


def read_pages(list wanted not None, size_t threads=1):
    """Do `read_page` and `release` of several decoders by one call, without the interpreter's lock.

    Decompression displaces everything else from the processor's caches, so little must happen between two pages.

    Parameters
    ----------
    wanted : list of (LeafDecoder, tuple, bool)
        A decoder, which occurs once, the arguments of `read_page`, and whether the data is a chunk of one data page.
    threads : int
        The greatest number of threads.

    Returns
    -------
    list
        For each decoder what `finish` gives, TAKE_DICTIONARY, or None. None: the core does not know the codec or the
        page has a fault, which a second read by `read_page` names.
    """
    cdef tuple items = tuple(wanted)
    cdef Py_ssize_t n = len(items), i
    cdef LeafBuffers decoder
    cdef ps_page_task *tasks = <ps_page_task *>PyMem_Calloc(<size_t>n + 1, sizeof(ps_page_task))
    cdef Py_buffer *views = <Py_buffer *>PyMem_Calloc(2 * <size_t>n + 1, sizeof(Py_buffer))
    cdef ps_page_task *task
    cdef list out = [], entered = []
    if tasks == NULL or views == NULL:
        PyMem_Free(tasks)
        PyMem_Free(views)
        raise MemoryError
    try:
        for i in range(n):
            one, (data, first_row, rows, ranges, hint, dictionary), whole = items[i]
            if not isinstance(one, LeafBuffers):
                raise TypeError(f"a LeafDecoder is wanted, not {type(one).__name__}")
            decoder = one
            decoder.enter()  # which fails if the decoder occurs twice
            entered.append(decoder)
            decoder.let_go()
            decoder.drop_dictionary()
            task = &tasks[i]
            decoder.hold_rows(ranges, &task.selection)
            PyObject_GetBuffer(data, &views[2 * i], PyBUF_SIMPLE)
            task.data, task.length = <const uint8_t *>views[2 * i].buf, <size_t>views[2 * i].len
            if dictionary is not None:
                PyObject_GetBuffer(dictionary, &views[2 * i + 1], PyBUF_SIMPLE)
                task.dictionary = <const uint8_t *>views[2 * i + 1].buf
                task.dictionary_length = <size_t>views[2 * i + 1].len
            task.leaf, task.first_row, task.rows, task.hint = decoder.leaf, first_row, rows, hint
            task.codec, task.step = decoder.codec, decoder.step
            task.max_page, task.max_values = decoder.max_page, decoder.max_values
            task.nested, task.repeats = decoder.nested, decoder.rep_mask > 0
            task.always_compressed, task.levels_only = decoder.always_compressed, decoder.levels_only
            task.codes_only, task.chunk = decoder.codes_only, whole
        with nogil:
            run_page_tasks(tasks, <size_t>n, threads)
        for i in range(n):
            decoder, task = entered[i], &tasks[i]
            decoder.dictionary_used = task.dictionary_used
            if task.state == PS_TASK_DONE:
                out.append(decoder.made(&task.column))
            elif task.state == PS_TASK_DICTIONARY:
                out.append(DICTIONARY_WANTED)
            else:
                out.append(None)
    finally:
        for i in range(2 * n):
            PyBuffer_Release(&views[i])
        PyMem_Free(tasks)
        PyMem_Free(views)
        for decoder in entered:
            decoder.leave()
    return out
