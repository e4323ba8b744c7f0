# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Pages of several leaves, read by one call on several threads."""
from pageseek._core.leaf cimport (
    DICTIONARY_WANTED, PS_TASK_DICTIONARY, PS_TASK_DONE, PS_TASK_THREADS, LeafBuffers, ps_page_task, ps_task_page,
    run_page_tasks,
)

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from libc.stdint cimport uint8_t

PARALLEL = bool(PS_TASK_THREADS)  # whether `read_pages` can use several threads


def read_pages(list wanted not None, size_t threads=1):
    """Read pages of several leaves by one call, without the interpreter's lock: begin, head, take, finish and release.

    Decompression displaces everything else from the processor's caches, so little must happen between two pages.

    Parameters
    ----------
    wanted : list of (LeafDecoder, list, ranges, int, buffer or None, bool)
        A decoder, which occurs once; its pages, each (buffer, first row, rows) as the offset index has them; the rows, and
        the hint, as for `begin`; the dictionary page; and whether there is one page, which is a whole chunk.
    threads : int
        The greatest number of threads. A decoder is one thread's.

    Returns
    -------
    list
        For each decoder what `finish` gives, TAKE_DICTIONARY, or None. None: the core does not know the codec, the output
        takes several arrays, or a page has a fault, which a second read page by page names.
    """
    cdef tuple items = tuple(wanted)
    cdef Py_ssize_t n = len(items), i, n_pages = 0, at = 0
    cdef LeafBuffers decoder
    cdef ps_page_task *task
    cdef ps_task_page *page
    cdef list out = [], entered = []
    for item in items:
        n_pages += len(item[1])
    cdef ps_page_task *tasks = <ps_page_task *>PyMem_Calloc(<size_t>n + 1, sizeof(ps_page_task))
    cdef ps_task_page *pages = <ps_task_page *>PyMem_Calloc(<size_t>n_pages + 1, sizeof(ps_task_page))
    cdef Py_buffer *views = <Py_buffer *>PyMem_Calloc(<size_t>(n + n_pages) + 1, sizeof(Py_buffer))
    if tasks == NULL or pages == NULL or views == NULL:
        PyMem_Free(tasks)
        PyMem_Free(pages)
        PyMem_Free(views)
        raise MemoryError
    try:
        for i in range(n):
            one, places, ranges, hint, dictionary, whole = items[i]
            if not isinstance(one, LeafBuffers):
                raise TypeError(f"a LeafDecoder is wanted, not {type(one).__name__}")
            decoder = one
            decoder.enter()  # which fails if the decoder occurs twice
            entered.append(decoder)
            decoder.let_go()
            decoder.drop_dictionary()
            task = &tasks[i]
            decoder.hold_rows(ranges, &task.selection)
            task.pages = &pages[at]
            for data, first_row, rows in places:
                if at == n_pages:
                    raise ValueError("pages were added meanwhile")
                PyObject_GetBuffer(data, &views[n + at], PyBUF_SIMPLE)
                page = &pages[at]
                page.data, page.length = <const uint8_t *>views[n + at].buf, <size_t>views[n + at].len
                page.first_row, page.rows = first_row, rows
                at += 1
                task.n_pages += 1
            if dictionary is not None:
                PyObject_GetBuffer(dictionary, &views[i], PyBUF_SIMPLE)
                task.dictionary = <const uint8_t *>views[i].buf
                task.dictionary_length = <size_t>views[i].len
            task.leaf, task.hint = decoder.leaf, hint
            task.codec, task.step = decoder.codec, decoder.step
            task.max_page, task.max_values = decoder.max_page, decoder.max_values
            task.nested, task.repeats = decoder.nested, decoder.rep_mask > 0
            task.always_compressed, task.levels_only = decoder.always_compressed, decoder.levels_only
            task.codes_only, task.chunk = decoder.codes_only, whole
            if whole and task.n_pages != 1:
                raise ValueError("a chunk is one buffer")
        with nogil:
            run_page_tasks(tasks, <size_t>n, threads)
        for i in range(n):
            decoder, task = entered[i], &tasks[i]
            decoder.dictionary_used = task.dictionary_used
            decoder.pages_read, decoder.pages_seen = task.pages_read, task.pages_seen
            if task.state == PS_TASK_DONE:
                out.append(decoder.made(&task.column))
            elif task.state == PS_TASK_DICTIONARY:
                out.append(DICTIONARY_WANTED)
            else:
                out.append(None)
    finally:
        for i in range(n + n_pages):
            PyBuffer_Release(&views[i])
        PyMem_Free(tasks)
        PyMem_Free(pages)
        PyMem_Free(views)
        for decoder in entered:
            decoder.leave()
    return out
