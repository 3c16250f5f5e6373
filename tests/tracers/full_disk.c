/* Preloaded into a process, the disk of one folder: from the n-th call on that needs room there, it has none, once or for good. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int first, only_once, number, seen;
static char under[4096];
/* Calls are counted anew; those from `at` on end with this error, or that one alone. */
void fill(const char *folder, int at, int error, int once) {
  snprintf(under, sizeof under, "%s/", folder);
  first = at, number = error, only_once = once, seen = 0;
}
int needed(void) { return seen; }

static int path_refused(const char *path) {
  if (!*under || strncmp(path, under, strlen(under))) return 0;
  seen++;
  if (only_once ? seen != first : seen < first) return 0;
  errno = number;
  return 1;
}
static int refused(int file) {
  char link[64], path[4096];
  if (!*under) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return path_refused(path);
}
#define NEXT(name) \
  static __typeof__(&name) next; \
  if (!next) next = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

ssize_t write(int file, const void *data, size_t size) {
  NEXT(write);
  return refused(file) ? -1 : next(file, data, size);
}
ssize_t pwrite(int file, const void *data, size_t size, off_t at) {
  NEXT(pwrite);
  if (!refused(file)) return next(file, data, size, at);
  return size > 100 && !only_once ? next(file, data, 100, at) : -1; /* a part may have fitted */
}
int posix_fallocate(int file, off_t at, off_t size) {
  NEXT(posix_fallocate);
  return refused(file) ? number : next(file, at, size);
}
int mkdir(const char *path, mode_t mode) {
  NEXT(mkdir);
  return path_refused(path) ? -1 : next(path, mode);
}
int rename(const char *from, const char *to) {
  NEXT(rename);
  return path_refused(to) ? -1 : next(from, to);
}
#define OPENS(name) \
  int name(const char *path, int how, ...) { \
    NEXT(name); \
    va_list more; \
    va_start(more, how); \
    int mode = va_arg(more, int); \
    va_end(more); \
    return how & O_CREAT && path_refused(path) ? -1 : next(path, how, mode); \
  }
OPENS(open)
OPENS(open64)
