/* A layer between a process and its disk: the n-th call on a path below a folder fails, or ends the process.
 *
 * Loaded by LD_PRELOAD. It does nothing until `faults_arm`, and counts for the process that armed it alone. A descriptor
 * is watched from its open to its close. Calls that libc makes of itself are not seen.
 */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, RENAME = 2, LIST = 4, READ = 8 };
enum { ONCE = 0, LASTING = 1, KILL = 2 };
enum { DESCRIPTORS = 65536 };

static char root[PATH_MAX];
static size_t root_length;
static int kinds, how, failure;
static long at;
static atomic_long counted, struck, counted_of[READ + 1];
static char first[PATH_MAX + 64];
static _Atomic unsigned char watched[DESCRIPTORS];

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found) abort();
    return found;
}

void faults_arm(const char *folder, int of_kinds, long nth, int what, int error_number) {
    kinds = 0;
    snprintf(root, sizeof root, "%s", folder);
    root_length = strlen(root);
    atomic_store(&counted, 0);
    atomic_store(&struck, 0);
    for (int kind = WRITE; kind <= READ; kind *= 2) atomic_store(&counted_of[kind], 0);
    first[0] = 0;
    at = nth, how = what, failure = error_number;
    kinds = of_kinds;
}

void faults_disarm(void) { kinds = 0; }
long faults_counted(int kind) { return atomic_load(&counted_of[kind]); }
long faults_struck(void) { return atomic_load(&struck); }
const char *faults_first(void) { return first; }

static int is_below(const char *path) {
    return kinds && path && !strncmp(path, root, root_length) && (path[root_length] == '/' || !path[root_length]);
}

static int is_watched(int fd) { return kinds && fd >= 0 && fd < DESCRIPTORS && atomic_load(&watched[fd]); }

/* Count a call; 1 if it is the one that fails. */
static int strikes(int kind, const char *call, const char *path) {
    if (!(kinds & kind)) return 0;
    long number = atomic_fetch_add(&counted, 1) + 1;
    atomic_fetch_add(&counted_of[kind], 1);
    if (number != at && !(how == LASTING && at > 0 && number > at)) return 0;
    if (how == KILL) kill(getpid(), SIGKILL);
    if (!atomic_fetch_add(&struck, 1)) snprintf(first, sizeof first, "%s %s", call, path ? path + root_length : "");
    errno = failure;
    return 1;
}

static int path_strikes(int kind, const char *call, const char *path) {
    return is_below(path) && strikes(kind, call, path);
}

static int fd_strikes(int kind, const char *call, int fd) {
    if (!is_watched(fd) || !(kinds & kind)) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = REAL(readlink)(link, path, sizeof path - 1);
    path[length < 0 ? 0 : length] = 0;
    return strikes(kind, call, length > (ssize_t)root_length ? path : NULL);
}

static int kind_of(int flags) {
    if (flags & O_DIRECTORY) return LIST;
    return flags & (O_CREAT | O_WRONLY | O_RDWR | O_TRUNC) ? WRITE : READ;
}

static int opened(int fd, const char *path) {
    if (fd >= 0 && fd < DESCRIPTORS) atomic_store(&watched[fd], is_below(path));
    return fd;
}

#define OPEN(name)                                                                     \
    int name(const char *path, int flags, ...) {                                       \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        mode_t mode = va_arg(rest, mode_t);                                            \
        va_end(rest);                                                                  \
        if (path_strikes(kind_of(flags), "open", path)) return -1;                     \
        return opened(((int (*)(const char *, int, mode_t))real(#name))(path, flags, mode), path); \
    }
#define OPENAT(name)                                                                   \
    int name(int folder, const char *path, int flags, ...) {                           \
        va_list rest;                                                                  \
        va_start(rest, flags);                                                         \
        mode_t mode = va_arg(rest, mode_t);                                            \
        va_end(rest);                                                                  \
        if (path_strikes(kind_of(flags), "open", path)) return -1;                     \
        return opened(((int (*)(int, const char *, int, mode_t))real(#name))(folder, path, flags, mode), path); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    if (fd >= 0 && fd < DESCRIPTORS) atomic_store(&watched[fd], 0);
    return REAL(close)(fd);
}

/* A disk that fills up takes a part of the write that does not fit. */
#define SHORTER(size) (how == LASTING && failure == ENOSPC && atomic_load(&struck) == 1 && (size) > 1)

ssize_t write(int fd, const void *bytes, size_t size) {
    if (fd_strikes(WRITE, "write", fd)) return SHORTER(size) ? REAL(write)(fd, bytes, size / 2) : -1;
    return REAL(write)(fd, bytes, size);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t place) {
    if (fd_strikes(WRITE, "write", fd)) return SHORTER(size) ? REAL(pwrite64)(fd, bytes, size / 2, place) : -1;
    return REAL(pwrite64)(fd, bytes, size, place);
}

#define FD(kind, type, name, call, parameters, arguments, fd)                          \
    type name parameters {                                                             \
        if (fd_strikes(kind, call, fd)) return -1;                                     \
        return REAL(name) arguments;                                                   \
    }
FD(WRITE, ssize_t, writev, "write", (int fd, const struct iovec *parts, int count), (fd, parts, count), fd)
FD(WRITE, int, fsync, "fsync", (int fd), (fd), fd)
FD(WRITE, int, fdatasync, "fsync", (int fd), (fd), fd)
FD(WRITE, int, ftruncate64, "ftruncate", (int fd, off64_t size), (fd, size), fd)
FD(READ, ssize_t, read, "read", (int fd, void *bytes, size_t size), (fd, bytes, size), fd)
FD(READ, ssize_t, readv, "read", (int fd, const struct iovec *parts, int count), (fd, parts, count), fd)
FD(READ, ssize_t, pread64, "read", (int fd, void *bytes, size_t size, off64_t place), (fd, bytes, size, place), fd)
FD(READ, ssize_t, pread, "read", (int fd, void *bytes, size_t size, off_t place), (fd, bytes, size, place), fd)

#define PATH(kind, name, call, parameters, arguments, path)                            \
    int name parameters {                                                              \
        if (path_strikes(kind, call, path)) return -1;                                 \
        return REAL(name) arguments;                                                   \
    }
PATH(WRITE, mkdir, "mkdir", (const char *path, mode_t mode), (path, mode), path)
PATH(RENAME, unlink, "unlink", (const char *path), (path), path)
PATH(RENAME, unlinkat, "unlink", (int folder, const char *path, int flags), (folder, path, flags), path)
PATH(RENAME, rmdir, "rmdir", (const char *path), (path), path)
PATH(RENAME, rename, "rename", (const char *from, const char *to), (from, to), to)
PATH(RENAME, renameat, "rename", (int a, const char *from, int b, const char *to), (a, from, b, to), to)
PATH(RENAME, renameat2, "rename", (int a, const char *from, int b, const char *to, unsigned flags),
     (a, from, b, to, flags), to)
PATH(RENAME, link, "link", (const char *from, const char *to), (from, to), to)
PATH(RENAME, linkat, "link", (int a, const char *from, int b, const char *to, int flags), (a, from, b, to, flags), to)
PATH(READ, stat, "stat", (const char *path, struct stat *found), (path, found), path)
PATH(READ, lstat, "stat", (const char *path, struct stat *found), (path, found), path)
PATH(READ, stat64, "stat", (const char *path, struct stat64 *found), (path, found), path)
PATH(READ, lstat64, "stat", (const char *path, struct stat64 *found), (path, found), path)
PATH(READ, fstatat, "stat", (int folder, const char *path, struct stat *found, int flags),
     (folder, path, found, flags), path)
PATH(READ, fstatat64, "stat", (int folder, const char *path, struct stat64 *found, int flags),
     (folder, path, found, flags), path)
PATH(READ, statx, "stat", (int folder, const char *path, int flags, unsigned mask, struct statx *found),
     (folder, path, flags, mask, found), path)

DIR *opendir(const char *path) {
    if (path_strikes(LIST, "opendir", path)) return NULL;
    DIR *folder = REAL(opendir)(path);
    if (folder) opened(dirfd(folder), path);
    return folder;
}

#define LISTED(type, name)                                                             \
    type *name(DIR *folder) {                                                          \
        if (fd_strikes(LIST, "readdir", dirfd(folder))) return NULL;                   \
        return REAL(name)(folder);                                                     \
    }
LISTED(struct dirent, readdir)
LISTED(struct dirent64, readdir64)

int closedir(DIR *folder) {
    int fd = dirfd(folder);
    if (fd >= 0 && fd < DESCRIPTORS) atomic_store(&watched[fd], 0);
    return REAL(closedir)(folder);
}

/* What is written here is thrown away; a sync of the whole machine would only hold up the others on it. */
void sync(void) {}
