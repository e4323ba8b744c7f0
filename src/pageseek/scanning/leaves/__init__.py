"""One leaf of one row group: which bytes, and their values.

| file | job |
|---|---|
| `leaf_places`, `leaf_reader` | which bytes, and their decoding |
| `leaf_chunk`, `page_walk` | what is known of the leaf before a byte is read; its pages, decoded one by one |
| `late_offsets` | where pages lie of leaves that no mechanism has asked for |
| `chunk_headers`, `output_size` | what the page headers of a chunk say; how much room its decoder makes at once |
| `segments` | the pages of one leaf, divided among threads |
| `page_batch` | the pages of several leaves, fetched in one wave and decoded by one call of the core |
| `few_rows` | few rows of all leaves as the work of one thread of the core |
| `dictionary_codes`, `entry_tests` | dictionary codes, kept as codes; conditions on the entries of dictionaries, which codes then answer |
| `decoded_columns`, `list_elements` | decoded leaves, tested and cut down to the rows that passed |
"""
