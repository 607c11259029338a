// PNG files, compressed in memory and then written whole.
#include "../base/base.h"

#pragma GCC diagnostic ignored "-Wunused-function"
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STB_IMAGE_WRITE_STATIC
#include <stb/stb_image_write.h>

// Writes pixels rgba {height, width, 4}, the top row first, as a PNG file at `path`, whole or not at all. CQ_OK, CQ_IO,
// CQ_MEMORY, or CQ_INVALID for a width or height below 1.
cq_status cq_image_write(const char *path, int32_t width, int32_t height, const uint8_t *rgba) {
  if (width < 1 || height < 1)
    return cq_fail(CQ_INVALID, "image '%s' of %d x %d pixels is wanted, at least 1 on a side is allowed", path, width,
                   height);
  stbi_write_png_compression_level = 6;
  int size = 0;
  unsigned char *bytes = stbi_write_png_to_mem(rgba, width * 4, width, height, 4, &size);
  if (!bytes) return cq_fail(CQ_MEMORY, "out of memory: compressing image '%s'", path);
  cq_status status = cq_file_replace(path, bytes, size, 0);
  STBIW_FREE(bytes);
  return status;
}
