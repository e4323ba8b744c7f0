"""The compiled core: three extension modules over one C library. README.md maps the files."""
