# cython: language_level=3, boundscheck=False, wraparound=False, freethreading_compatible=True
"""Pages of several leaves, read by one call on several threads."""
from pageseek._core.leaf cimport (
    DICTIONARY_WANTED, PS_TASK_AGAIN, PS_TASK_DICTIONARY, PS_TASK_DONE, PS_TASK_THREADS, CoreCall, LeafBuffers,
    begin_page_work, drop_output, end_page_work, ps_page_task, ps_page_work, ps_task_page, ps_unread, run_page_tasks,
)

from pageseek._core.file_bytes cimport FileBytes

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint8_t

cimport cython

PARALLEL = bool(PS_TASK_THREADS)  # whether `read_pages` can use several threads


def read_pages(wanted not None, size_t threads=1):
    """Read pages of several leaves by one call, without the interpreter's lock: begin, head, take, finish and release.

    Decompression displaces everything else from the processor's caches, so little must happen between two pages.

    Parameters
    ----------
    wanted : sequence of (LeafDecoder, list, ranges, int, buffer or None, bool)
        A decoder, which occurs once; its pages, each (buffer, first row, rows) as the offset index has them, where FileBytes
        are read by the thread that decodes them; the rows, and the hint, as for `begin`; the dictionary page; and whether
        the pages are whole chunks, of a row group each. For a decoder of `passes` a list takes the place of the dictionary
        page: for each chunk, or for all pages together, a buffer with a byte for each entry of the dictionary, 1 or 0.
        A PointTask may take the place of a tuple.
    threads : int
        The greatest number of threads. A decoder is one thread's.

    Returns
    -------
    list
        For each decoder what `finish` gives, TAKE_DICTIONARY, or None. A decoder with tests gives the rows that pass, and
        its `passing` tells them. A PointTask gives a Batch. None: the core does not know the codec, the output
        takes several arrays, or a page has a fault, which a second read page by page names.
    """
    cdef PageWork work = PageWork(wanted)
    with nogil:
        run_page_tasks(work.tasks, <size_t>work.n, threads)
    return work.taken()


@cython.no_gc  # buffers and decoders do not refer back, and threads of the core use them until the work has ended
cdef class PageWork:
    """Pages of several leaves that threads of the core read while the caller does something else.

    `wanted` is as for `read_pages`. Where the work is given up, pages that no thread has begun are not read.
    """

    cdef tuple items
    cdef list entered
    cdef set unread  # FileBytes that threads of the core read
    cdef Py_ssize_t n, n_views
    cdef ps_page_task *tasks
    cdef ps_task_page *pages
    cdef Py_buffer *views
    cdef ps_page_work *work
    cdef bint ready  # for results

    def __init__(self, wanted not None):
        if self.items is not None:
            raise ValueError("work begins once")
        cdef tuple items = tuple(wanted)
        cdef Py_ssize_t n = len(items), i, n_pages = 0, at = 0, k
        cdef LeafBuffers decoder
        cdef CoreCall call
        cdef ps_page_task *task
        cdef ps_task_page *page
        self.items, self.entered, self.unread, self.n = items, [], set(), n
        for item in items:
            if not isinstance(item, CoreCall):
                n_pages += len(item[1])
        self.tasks = <ps_page_task *>PyMem_Calloc(<size_t>n + 1, sizeof(ps_page_task))
        self.pages = <ps_task_page *>PyMem_Calloc(<size_t>n_pages + 1, sizeof(ps_task_page))
        self.views = <Py_buffer *>PyMem_Calloc(<size_t>(n + 2 * n_pages) + 1, sizeof(Py_buffer))
        if self.tasks == NULL or self.pages == NULL or self.views == NULL:
            raise MemoryError
        self.n_views = n + 2 * n_pages
        for i in range(n):
            if isinstance(items[i], CoreCall):
                call = items[i]
                call.enter()  # which fails if it occurs twice
                self.entered.append(call)
                call.fill(&self.tasks[i])
                continue
            one, places, ranges, hint, dictionary, whole = items[i]
            if not isinstance(one, LeafBuffers):
                raise TypeError(f"a LeafDecoder is wanted, not {type(one).__name__}")
            decoder = one
            decoder.enter()  # which fails if the decoder occurs twice
            self.entered.append(decoder)
            decoder.let_go()
            decoder.drop_dictionary()
            task = &self.tasks[i]
            decoder.hold_rows(ranges, &task.selection)
            task.pages, k = &self.pages[at], at
            for data, first_row, rows in places:
                if at == n_pages:
                    raise ValueError("pages were added meanwhile")
                page = &self.pages[at]
                page.unread = self.hold(data, &self.views[n + at], &page.data, &page.length)
                page.first_row, page.rows = first_row, rows
                at += 1
                task.n_pages += 1
            if isinstance(dictionary, list):
                if <size_t>len(dictionary) != (task.n_pages if whole or not task.n_pages else 1):
                    raise ValueError(f"{len(dictionary)} buffers for {task.n_pages} {'chunks' if whole else 'pages'}")
                for data in tuple(dictionary):
                    page = &self.pages[k]
                    PyObject_GetBuffer(data, &self.views[n + n_pages + k], PyBUF_SIMPLE)
                    page.passes = <const uint8_t *>self.views[n + n_pages + k].buf
                    page.n_passes = self.views[n + n_pages + k].len
                    k += 1
            elif dictionary is not None:
                task.unread_dictionary = self.hold(
                    dictionary, &self.views[i], &task.dictionary, &task.dictionary_length
                )
            task.leaf, task.hint = decoder.leaf, hint
            task.codec, task.step = decoder.codec, decoder.step
            task.max_page, task.max_values = decoder.max_page, decoder.max_values
            task.nested, task.repeats = decoder.nested, decoder.rep_mask > 0
            task.always_compressed, task.levels_only = decoder.always_compressed, decoder.levels_only
            task.codes_only, task.chunk, task.entries = decoder.codes_only, whole, decoder.entries_only
            decoder.passing = None
            if decoder.tests is not None:
                task.tests, task.n_tests, task.keeps = decoder.tests.tests, decoder.tests.n, decoder.tests.keeps
        self.ready = True

    cdef ps_unread *hold(self, data, Py_buffer *view, const uint8_t **at, size_t *length) except? NULL:
        """Hold the bytes of a buffer. Returns what tells where they are read from, if they are not there yet."""
        cdef FileBytes later
        if isinstance(data, FileBytes):
            later = data
            if later.block is None or later in self.unread:
                later.load()  # which refuses bytes of no file; two threads may not read the same ones
            if not later.unread.there:
                self.unread.add(later)
                at[0], length[0] = later.unread.out, later.unread.length
                return &later.unread
        PyObject_GetBuffer(data, view, PyBUF_SIMPLE)
        at[0], length[0] = <const uint8_t *>view.buf, <size_t>view.len
        return NULL

    def begin(self, size_t helpers):
        """Have so many threads begin, at most. Without one, `results` does the work."""
        if self.work != NULL or not self.ready:
            raise ValueError("work begins once")
        with nogil:
            self.work = begin_page_work(self.tasks, <size_t>self.n, helpers)

    def results(self):
        """The results, as those of `read_pages`, once. The thread that calls helps until all pages are read."""
        cdef Py_ssize_t i
        cdef ps_page_work *work = self.work
        cdef bint known = True
        if not self.ready:
            raise ValueError("the results were taken")
        self.work, self.ready = NULL, False
        with nogil:
            if work == NULL:
                run_page_tasks(self.tasks, <size_t>self.n, 1)
            else:
                known = end_page_work(work, False)
        if not known:
            self.leave_alone()
            for i in range(self.n):
                self.tasks[i].state = PS_TASK_AGAIN
        return self.taken()

    cdef void leave_alone(self):
        """Never free the decoders. After a fork they are as a thread of the parent left them, in the middle of a page."""
        Py_INCREF(self.items)

    cdef list taken(self):
        cdef LeafBuffers decoder
        cdef CoreCall call
        cdef ps_page_task *task
        cdef list out = []
        cdef Py_ssize_t i = 0
        try:
            for i in range(self.n):
                task = &self.tasks[i]
                if isinstance(self.entered[i], CoreCall):
                    call = self.entered[i]
                    out.append(call.taken(task.state == PS_TASK_DONE))
                    continue
                decoder = self.entered[i]
                decoder.dictionary_used, decoder.dictionary_pages = task.dictionary_pages > 0, task.dictionary_pages
                decoder.pages_read, decoder.pages_seen = task.pages_read, task.pages_seen
                if task.state == PS_TASK_DONE:
                    if task.n_tests:
                        decoder.take_passing(&task.passing)
                    out.append(decoder.made(&task.column))
                elif task.state == PS_TASK_DICTIONARY:
                    out.append(DICTIONARY_WANTED)
                else:
                    out.append(None)
        finally:
            drop_output(self.tasks, self.n)  # the rest, if memory ends
            self.end()
        return out

    cdef void end(self):
        cdef Py_ssize_t i
        cdef LeafBuffers decoder
        cdef CoreCall call
        for i in range(self.n_views):
            PyBuffer_Release(&self.views[i])
        PyMem_Free(self.tasks)
        PyMem_Free(self.pages)
        PyMem_Free(self.views)
        self.tasks, self.pages, self.views, self.n_views = NULL, NULL, NULL, 0
        for one in self.entered:
            if isinstance(one, CoreCall):
                call = one
                call.leave()
            else:
                decoder = one
                decoder.leave()
        self.entered, self.unread = [], set()

    def __dealloc__(self):
        cdef ps_page_work *work = self.work
        cdef bint known = True
        if work != NULL:
            with nogil:
                known = end_page_work(work, True)
        if not known:
            self.leave_alone()
        elif self.tasks != NULL:
            drop_output(self.tasks, self.n)
        if self.entered is not None:
            self.end()
