"""What the bytes of a Parquet file mean.

| file | job | section of the specification |
|---|---|---|
| `types` | physical and logical types, and the Arrow types they become | LogicalTypes.md |
| `stored_types` | fields of the Arrow schema that a writer stored | |
| `null_arrays` | arrays of nulls, as large as limits allow | |
| `schema` | the schema tree and its leaves | parquet.thrift, SchemaElement |
| `nesting/` | definition and repetition levels of nested fields | README.md, Nested Encoding |
| `footer` | finds the footer at the end of a file | README.md, File format |
| `sparse_footer`, `footer_form` | parts of a large footer, by the index that says where they are | docs/format.md |
| `file_footer` | what the footer says: row groups, column chunks, key-value metadata | parquet.thrift, FileMetaData |
| `file_statistics` | the same with the statistics of its column chunks | parquet.thrift, Statistics |
| `file_attached` | the same with what was attached to it, and the indexes that are not used | docs/format.md |
| `file_metadata` | the same with its page index, as the package uses it | PageIndex.md |
| `parquet_file` | a file as `pageseek.open` shows it to users | |
| `file_html` | how consoles and notebooks show it | |
| `chunks` | the records of column chunks and pages that the core decodes | parquet.thrift, ColumnMetaData |
| `writers` | which writers left wrong statistics | |
| `statistics`, `bounds` | least and greatest values, and whether they can be used | parquet.thrift, Statistics |
| `page_index` | ColumnIndex and OffsetIndex | PageIndex.md |
| `page_headers` | page headers, walked where a file has no page index | parquet.thrift, PageHeader |
| `codecs` | decompression | Compression.md |
| `columns` | column names to leaves, and the Arrow fields that come out | |
| `embedded` | the directory of indexes that pageseek attaches | docs/format.md |
| `checksums` | checksums of attached page indexes and Bloom filters | docs/format.md |
| `value_list` | the body of an attached list of distinct values | docs/format.md |
"""
