// A file that is replaced whole: readers, and a crash at any moment, see the old one or the new one.
#define _POSIX_C_SOURCE 200809L
#include "tensor.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

// the rename is durable once the folder is; some file systems cannot flush a folder, and that is no failure
static void flush_folder(char *path) {
  char *slash = strrchr(path, '/');
  if (slash) slash[slash == path ? 1 : 0] = 0;
  int folder = open(slash ? path : ".", O_RDONLY);
  if (folder < 0) return;
  fsync(folder);
  close(folder);
}

cq_status cq_file_replace(const char *path, const void *bytes, int64_t size) {
  size_t length = strlen(path) + 32;
  char *temporary = cq_alloc(length, 1, "a file name");
  if (!temporary) return CQ_MEMORY;
  snprintf(temporary, length, "%s.%ld.part", path, (long)getpid());
  const char *failed = NULL;
  int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) failed = "be opened";
  else if (write_all(file, bytes, size) < 0) failed = "be written";
  else if (fsync(file) < 0) failed = "be flushed to disk";
  int cause = errno;
  // a full disk may show only now
  if (file >= 0 && close(file) < 0 && !failed) failed = "be closed", cause = errno;
  if (!failed && rename(temporary, path) < 0) failed = "be replaced", cause = errno;
  cq_status status = CQ_OK;
  if (failed) {
    if (file >= 0) unlink(temporary);
    status = cq_fail(CQ_IO, "%s cannot %s: %s; what stood there is unchanged", path, failed, strerror(cause));
  } else {
    flush_folder(temporary);
  }
  cq_free(temporary);
  return status;
}
