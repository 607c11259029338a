// Image files as pixels. The header is read first, so that an enormous picture is refused before any memory is taken.
#include "../base/base.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_PNG            // colours are groups: a lossy format would tear them
#define STBI_FAILURE_USERMSG
#include <stb/stb_image.h>

enum {
  IMAGE_SIDE_MAX = 16384,        // [pixel]
  IMAGE_AREA_MAX = 1 << 26,      // [pixel], 8192 x 8192: a quarter of a GiB once decoded
  IMAGE_FILE_MAX = 1 << 28,      // [byte]
};

static cq_status open_png(const char *path, FILE **file) {
  unsigned char magic[8] = { 0 };
  static const unsigned char png[8] = { 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n' };
  *file = fopen(path, "rb");
  if (!*file) return cq_fail(CQ_IO, "cannot open image '%s': %s", path, strerror(errno));
  size_t got = fread(magic, 1, sizeof magic, *file);
  cq_status status = CQ_OK;
  if (ferror(*file)) status = cq_fail(CQ_IO, "cannot read image '%s': %s", path, strerror(errno));
  else if (!got) status = cq_fail(CQ_IO, "image '%s' is empty, a PNG file is wanted", path);
  else if (got < sizeof magic || memcmp(magic, png, sizeof png))
    status = cq_fail(CQ_IO, "image '%s' is not a PNG file, the only format read here (JPEG smears the colours)", path);
  else if (fseek(*file, 0, SEEK_END) || ftell(*file) > IMAGE_FILE_MAX)
    status = cq_fail(CQ_IO, "image file '%s' is larger than %d MiB, the most that is read", path, IMAGE_FILE_MAX >> 20);
  if (status) { fclose(*file); *file = NULL; return status; }
  rewind(*file);
  return CQ_OK;
}

static uint32_t big_endian(const unsigned char *b) { return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]; }

static cq_status read_header(FILE *file, const char *path, int32_t size[2]) {
  unsigned char header[24];      // signature, length and name of the first chunk, width, height
  size_t got = fread(header, 1, sizeof header, file);
  rewind(file);
  if (got < sizeof header || memcmp(header + 12, "IHDR", 4))
    return cq_fail(CQ_IO, "the header of image '%s' is broken or cut off", path);
  uint32_t width = big_endian(header + 16), height = big_endian(header + 20);
  if (!width || !height) return cq_fail(CQ_IO, "image '%s' is %u x %u pixels, at least 1 on a side is wanted", path, width, height);
  if (width > IMAGE_SIDE_MAX || height > IMAGE_SIDE_MAX || (uint64_t)width * height > IMAGE_AREA_MAX)
    return cq_fail(CQ_INVALID, "image '%s' is %u x %u pixels, at most %d on a side and %d million in all are allowed",
                   path, width, height, IMAGE_SIDE_MAX, IMAGE_AREA_MAX / 1000000);
  size[0] = (int32_t)width;
  size[1] = (int32_t)height;
  return CQ_OK;
}

cq_status cq_image_size(const char *path, int32_t size[2]) {
  FILE *file;
  cq_status status = open_png(path, &file);
  if (status) return status;
  status = read_header(file, path, size);
  fclose(file);
  return status;
}

cq_status cq_image_read(const char *path, int64_t bytes, uint8_t *rgba) {
  FILE *file;
  int32_t size[2] = { 0 };
  cq_status status = open_png(path, &file);
  if (status) return status;
  status = read_header(file, path, size);
  if (!status && bytes != (int64_t)size[0] * size[1] * 4)
    status = cq_fail(CQ_INVALID, "image '%s' is %d x %d pixels: %lld bytes are wanted for it, got %lld", path, size[0], size[1],
                     (long long)size[0] * size[1] * 4, (long long)bytes);
  if (!status) {
    int width, height, channels;
    unsigned char *pixels = stbi_load_from_file(file, &width, &height, &channels, 4);
    if (pixels) memcpy(rgba, pixels, (size_t)bytes);
    else status = cq_fail(CQ_IO, "image '%s' is damaged or cut off: %s", path, stbi_failure_reason());
    stbi_image_free(pixels);
  }
  fclose(file);
  return status;
}
