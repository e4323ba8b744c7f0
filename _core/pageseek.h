/* pageseek.h - the public header of the C core: it includes the headers below, each a contract.
 *
 *   ps_base.h      status, errors, memory
 *   ps_metadata.h  footers, page indexes, page headers, Bloom filters, indexes of pageseek's own
 *   ps_values.h    values, comparison, search, zones; selections of rows; rows of an Arrow array
 *   ps_leaf.h      codecs, pages, the decoder of a leaf
 *   ps_point.h     a few rows of one row group by tests on its leaves
 *   ps_writing.h   metadata written, indexes built
 *
 * A header includes only those above it. These rules hold for every function:
 *   - It does no IO and calls no Python; ps_point_read reads by a function of the caller. Threads may call it on different objects at once. What is shared
 *     by all objects is named in ps_base.h (the pool) and ps_leaf.h (libraries of the system, the scan of text).
 *   - A function that can fail returns ps_status and takes `ps_error *err` last. `err` may be NULL. On
 *     failure it holds one sentence and the byte at fault, counted from the start of the input.
 *   - Input bytes are hostile. Only [data, data + length) is read, and no number in it is trusted as a size.
 *   - A pointer that is passed in is borrowed until the call returns, unless its comment says how long. A
 *     pointer that is returned belongs to the caller, who frees it with the function that is named.
 *   - Sizes are size_t and count bytes. Rows and file offsets are int64_t. A row is 0 to INT64_MAX - 1. Ranges
 *     of rows and bytes are half-open. Integers in files are little endian and read with memcpy.
 */
#ifndef PAGESEEK_H
#define PAGESEEK_H

#include "ps_base.h"
#include "ps_leaf.h"
#include "ps_metadata.h"
#include "ps_point.h"
#include "ps_values.h"
#include "ps_writing.h"

#endif
