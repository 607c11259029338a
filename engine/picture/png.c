// PNG files: written beside their place and renamed, so that a reader never meets half a picture.
#include "../base/base.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>

typedef struct sink {
  FILE *file;
  int failed;                    // errno of the first failed write
} sink;

static void write_some(void *context, void *data, int size) {
  sink *out = context;
  if (!out->failed && fwrite(data, 1, (size_t)size, out->file) != (size_t)size) out->failed = errno ? errno : EIO;
}

cq_status cq_image_write(const char *path, int32_t width, int32_t height, const uint8_t *rgba) {
  if (width < 1 || height < 1)
    return cq_fail(CQ_INVALID, "image '%s' of %d x %d pixels is wanted, at least 1 on a side is allowed", path, width,
                   height);
  char beside[4096];
  if (snprintf(beside, sizeof beside, "%s.part", path) >= (int)sizeof beside)
    return cq_fail(CQ_INVALID, "the path of an image has %zu characters, at most %zu are allowed", strlen(path),
                   sizeof beside - 6);
  sink out = { .file = fopen(beside, "wb") };
  if (!out.file) return cq_fail(CQ_IO, "cannot write image '%s': %s", path, strerror(errno));
  stbi_write_png_compression_level = 6;
  int done = stbi_write_png_to_func(write_some, &out, width, height, 4, rgba, width * 4);
  if (fclose(out.file) && !out.failed) out.failed = errno;
  cq_status status = CQ_OK;
  if (out.failed) status = cq_fail(CQ_IO, "cannot write image '%s': %s", path, strerror(out.failed));
  else if (!done) status = cq_fail(CQ_MEMORY, "out of memory: compressing image '%s'", path);
  else if (rename(beside, path)) status = cq_fail(CQ_IO, "cannot write image '%s': %s", path, strerror(errno));
  if (status) remove(beside);
  return status;
}
