// A file that is replaced whole: readers, and a crash at any moment, see the old one or the new one.
#define _XOPEN_SOURCE 700
#include "base.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Writes all bytes to an open file, in as many calls as it takes; 0, or -1 on failure, with errno.
static int write_all(int file, const char *bytes, int64_t size) {
  while (size > 0) {
    ssize_t written = write(file, bytes, (size_t)size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return -1;
    bytes += written;
    size -= written;
  }
  return 0;
}

// Flushes the folder of a path, so that a rename in it survives a power failure; cuts `path` off after the folder. Some
// file systems cannot flush one, which is no failure.
static void flush_folder(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) slash[slash == path ? 1 : 0] = 0;
  int folder = open(slash ? path : ".", O_RDONLY);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

// Writes bytes into a new or emptied file, and if durable flushes it to disk. Returns NULL, or on failure the end of
// the sentence "FILE cannot ...", with errno.
static const char *write_file(const char *path, const void *bytes, int64_t size, int durable) {
  int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return "be opened";
  const char *failed = NULL;
  if (write_all(file, bytes, size) < 0) failed = "be written";
  else if (durable && fsync(file) < 0) failed = "be flushed to disk";
  int cause = errno;
  // a full disk may show only now
  if (close(file) < 0 && !failed) failed = "be closed", cause = errno;
  errno = cause;
  return failed;
}

// Is this path a device or a pipe? cq_file_replace writes to it directly, since renaming a file over it would remove
// it.
static int is_special(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

// Leaves the sentence that a file could not be replaced, and returns CQ_IO. failed: as write_file returns it, with the
// reason in errno.
static cq_status refuse(const char *path, const char *failed) {
  int cause = errno;
  const char *slash = strrchr(path, '/');
  if (cause == ENOENT && slash)
    return cq_fail(CQ_IO, "%s cannot be written: there is no folder %.*s", path, (int)(slash - path), path);
  const char *kept = access(path, F_OK) == 0 ? "; what stood there is unchanged" : "";
  return cq_fail(CQ_IO, "%s cannot %s: %s%s%s", path, failed, strerror(cause), kept,
                 cause == ENOSPC || cause == EDQUOT ? ": make room and start again" : "");
}

// Writes a whole file or leaves the old one as it was: a temporary beside it, renamed over it. durable: flushed to disk
// first, so that it outlives a power cut. A device or a pipe is written to as it is; of a link the target is replaced.
// CQ_OK, CQ_IO or CQ_MEMORY.
cq_status cq_file_replace(const char *path, const void *bytes, int64_t size, int32_t durable) {
  if (is_special(path)) {
    const char *failed = write_file(path, bytes, size, 0);
    return failed ? cq_fail(CQ_IO, "%s cannot %s: %s", path, failed, strerror(errno)) : CQ_OK;
  }
  // of a link, what it leads to is replaced
  char *resolved = realpath(path, NULL);
  const char *target = resolved ? resolved : path;
  size_t length = strlen(target) + 32;
  char *beside = cq_alloc(length, 1, "a file name");
  if (!beside) {
    free(resolved);
    return CQ_MEMORY;
  }
  snprintf(beside, length, "%s.%ld.part", target, (long)getpid());
  const char *failed = write_file(beside, bytes, size, durable);
  if (!failed && rename(beside, target) < 0) failed = "be replaced";
  cq_status status = CQ_OK;
  if (failed) {
    status = refuse(path, failed);
    unlink(beside);
  } else if (durable) {
    flush_folder(beside);
  }
  cq_free(beside);
  free(resolved);
  return status;
}
