"""What would make queries cheaper: estimated by a sample, and never written.

| file | job |
|---|---|
| `advising` | the public function |
| `questions` | the filters, in the parts that are joined by AND |
| `layout` | the pages of the row groups that planning left |
| `sampling` | values of the tested columns in some of their pages, bounded in bytes |
| `column_facts` | what a sample tells of a column: different values, runs, order |
| `matches` | which rows are likely to pass, and where they lie |
| `reading` | the bytes and requests with which a scan reads given rows |
| `present`, `candidates` | the indexes that there are; the changes that apply |
| `estimates` | what would be read of files with a change |
| `text_search`, `larger_groups` | the same of a trigram index; row groups as `rewrite` writes them |
| `recommending` | the fewest changes that gain most |
| `footers` | what would help any query, by the footers alone |
| `commands` | how a change is made |
| `results`, `advice_html` | the result, as records, text and plain data; how notebooks show it |
"""
