/* files.h - system calls for local files: versions and last bytes of many, places of one that is open.
 *
 * It belongs to files.pyx and points.pyx and is no part of pageseek.h, as kernels do no IO. Without POSIX, PS_FILES is 0 and no
 * call is made. */
#ifndef PAGESEEK_FILES_H
#define PAGESEEK_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of a file, and how many bytes were read of it. size < 0: nothing is known of the file. */
typedef struct ps_file_seen {
    int64_t node, size, time_ns, read;
} ps_file_seen;

#if defined(__unix__) || defined(__APPLE__)

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PS_FILES = 1 };

static inline void ps_file_told(const struct stat *now, ps_file_seen *out) {
#ifdef __APPLE__
    const struct timespec *changed = &now->st_mtimespec;
#else
    const struct timespec *changed = &now->st_mtim;
#endif
    const int64_t second = 1000000000, most = INT64_MAX / second - 1;
    if (!S_ISREG(now->st_mode) || changed->tv_sec > most || changed->tv_sec < -most) {
        return; /* the caller opens it, and tells what is wrong */
    }
    out->node = (int64_t)now->st_ino;
    out->size = (int64_t)now->st_size;
    out->time_ns = (int64_t)changed->tv_sec * second + changed->tv_nsec;
}

/* Opens a folder, so that the system walks the path to it once, and not for each file in it. The caller closes it.
 * Negative: it cannot be opened, and paths are looked up as they are. */
static inline int ps_folder_open(const char *path) {
#if defined(O_PATH)
    const int only = O_PATH; /* permission to look names up is enough, as it is for a path */
#elif defined(O_SEARCH)
    const int only = O_SEARCH;
#else
    const int only = O_RDONLY;
#endif
    return open(path, only | O_DIRECTORY | O_CLOEXEC);
}

static inline void ps_folder_close(int folder) {
    if (folder >= 0) {
        close(folder);
    }
}

/* Finds the version of a file. `path` is relative to the folder, if one is open. */
static inline void ps_file_stat(int folder, const char *path, ps_file_seen *out) {
    struct stat now;
    *out = (ps_file_seen){0, -1, 0, 0};
    if (fstatat(folder < 0 ? AT_FDCWD : folder, path, &now, 0) == 0) {
        ps_file_told(&now, out);
    }
}

/* Reads the last bytes of a file but for those `behind`: all of them, or `length`. What was written to meanwhile is not known:
 * its bytes may be of two versions. */
static inline void ps_file_read_end(int folder, const char *path, uint8_t *out_bytes,
                                    size_t length, int64_t behind, ps_file_seen *out) {
    struct stat now;
    ps_file_seen after = {0, -1, 0, 0};
    *out = (ps_file_seen){0, -1, 0, 0};
    /* it does not wait for the other end of a pipe, and no terminal becomes that of the process */
    int fd = openat(folder < 0 ? AT_FDCWD : folder, path,
                    O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return;
    }
    if (fstat(fd, &now) == 0) {
        ps_file_told(&now, out);
    }
    if (out->size > behind) {
        int64_t stop = out->size - behind;
        int64_t at = stop > (int64_t)length ? stop - (int64_t)length : 0;
        size_t wanted = (uint64_t)(stop - at) < length ? (size_t)(stop - at) : length;
        ssize_t n = pread(fd, out_bytes, wanted, (off_t)at);
        if (fstat(fd, &now) == 0) {
            ps_file_told(&now, &after);
        }
        if (after.size == out->size && after.time_ns == out->time_ns) {
            out->read = n < 0 ? 0 : (int64_t)n;
        } else {
            *out = (ps_file_seen){0, -1, 0, 0};
        }
    }
    close(fd);
}

/* Reads exactly `length` bytes at `offset` of the open file *fd, as ps_source does. */
static inline bool ps_file_read(void *fd, int64_t offset, uint8_t *out_bytes, size_t length) {
    while (length) {
        ssize_t n = pread(*(const int *)fd, out_bytes, length, (off_t)offset);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        out_bytes += n;
        offset += n;
        length -= (size_t)n;
    }
    return true;
}

/* A monotonic clock, in nanoseconds. */
static inline int64_t ps_files_clock(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#else

enum { PS_FILES = 0 };

static inline int ps_folder_open(const char *path) {
    (void)path;
    return -1;
}

static inline void ps_folder_close(int folder) {
    (void)folder;
}

static inline void ps_file_stat(int folder, const char *path, ps_file_seen *out) {
    (void)folder;
    (void)path;
    *out = (ps_file_seen){0, -1, 0, 0};
}

static inline void ps_file_read_end(int folder, const char *path, uint8_t *out_bytes,
                                    size_t length, int64_t behind, ps_file_seen *out) {
    (void)out_bytes;
    (void)length;
    (void)behind;
    ps_file_stat(folder, path, out);
}

static inline bool ps_file_read(void *fd, int64_t offset, uint8_t *out_bytes, size_t length) {
    (void)fd;
    (void)offset;
    (void)out_bytes;
    (void)length;
    return false;
}

static inline int64_t ps_files_clock(void) {
    return 0;
}

#endif
#endif
