"""Where files live: local disk, memory, object stores, HTTP servers, filesystems of pyarrow and fsspec.

| file | job |
|---|---|
| `store` | the protocol: one open file of one version |
| `resolve` | from what the user gives to files |
| `listing` | which files a directory or a glob means |
| `hive` | columns in the names of folders (`k=1`) |
| `table_folders` | which folders are tables of Delta Lake or Iceberg, or file sinks of Spark |
| `sink_logs` | which files of such a sink count |
| `urls` | which library opens a URL |
| `files` | what such a library does for us, and questions about one path of a store |
| `local` | files of this machine, and bytes in memory |
| `remote` | what all open remote files share: several ranges at once, retries, checked answers |
| `obstore_files`, `fsspec_files`, `pyarrow_files` | remote files, by the library that opens them |
| `obstore_faults`, `folder_markers` | what an error of obstore means, and which empty objects of its listings are folders |
| `obstore_options` | stores of obstore from URLs and options |
| `listed_versions` | versions of many files at once |
| `endpoint` | measured latency and bandwidth of a store |
| `requests` | the threads that wait for a store, and time limits of calls |
| `retry` | what a failed request means, and when it is tried again |
| `redact` | URLs and errors without their secrets |
| `atomic_files`, `writing` | files that appear whole or not at all, on this machine and in a store |
| `output_folders` | folders that many files are written to |
"""

from typing import TYPE_CHECKING

from pageseek.base.late_modules import handed_on

if TYPE_CHECKING:
    from pageseek.storage.files import Begun
    from pageseek.storage.hive import Types
    from pageseek.storage.remote import RemoteStore
    from pageseek.storage.resolve import Source, Sources
    from pageseek.storage.retry import RetryPolicy
    from pageseek.storage.store import Known, Store, Version
    from pageseek.storage.table_folders import Origin

__all__ = [
    "Begun",
    "Known",
    "Origin",
    "RemoteStore",
    "RetryPolicy",
    "Source",
    "Sources",
    "Store",
    "Types",
    "Version",
]

__getattr__ = handed_on(
    __name__,
    {
        "Begun": "files",
        "Known": "store",
        "Origin": "table_folders",
        "RemoteStore": "remote",
        "RetryPolicy": "retry",
        "Source": "resolve",
        "Sources": "resolve",
        "Store": "store",
        "Types": "hive",
        "Version": "store",
    },
)
