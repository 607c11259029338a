// Image files as pixels. The header is read first, so that an enormous picture is refused before any memory is taken.
#include "../base/base.h"
#include <ctype.h>
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
  DEFLATE_MOST = 1032,           // how many bytes one byte of a deflated stream can become at most
};

// Opens a file into *file and checks that it begins as a PNG and has at most IMAGE_FILE_MAX bytes. CQ_OK, or CQ_IO with
// the file closed.
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
  rewind(*file);
  if (status) fclose(*file);
  return status;
}

// The unsigned number of four bytes, the most significant first, as in PNG files.
static uint32_t big_endian(const unsigned char *b) {
  return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

typedef struct png {
  uint32_t width, height;
  int64_t packed;                // [byte] of compressed rows in all
} png;

// Reads width and height from the first chunk of a PNG file into p. CQ_OK, CQ_IO for a broken header, CQ_INVALID for
// too large a picture.
static cq_status read_header(FILE *file, const char *path, png *p) {
  unsigned char header[29];      // signature; length and name of the first chunk; width, height, bits, colours, methods
  size_t got = fread(header, 1, sizeof header, file);
  rewind(file);
  if (got < sizeof header || big_endian(header + 8) != 13 || memcmp(header + 12, "IHDR", 4))
    return cq_fail(CQ_IO, "the header of image '%s' is broken or cut off", path);
  p->width = big_endian(header + 16);
  p->height = big_endian(header + 20);
  if (!p->width || !p->height)
    return cq_fail(CQ_IO, "image '%s' is %u x %u pixels, at least 1 on a side is wanted", path, p->width, p->height);
  if (p->width > IMAGE_SIDE_MAX || p->height > IMAGE_SIDE_MAX || (uint64_t)p->width * p->height > IMAGE_AREA_MAX)
    return cq_fail(CQ_INVALID, "image '%s' is %u x %u pixels, at most %d on a side and %d million in all are allowed",
                   path, p->width, p->height, IMAGE_SIDE_MAX, IMAGE_AREA_MAX / 1000000);
  return CQ_OK;
}

// ---- chunks: a length, a name, so many bytes, and a checksum of name and bytes --------------------------------------

static uint32_t crc_of_byte[256];

// Fills the table by which crc_of computes checksums byte by byte, once.
static void fill_crc(void) {
  for (uint32_t i = 0; i < 256 && !crc_of_byte[255]; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? 0xedb88320u ^ c >> 1 : c >> 1;
    crc_of_byte[i] = c;
  }
}

// Continues crc over `count` more bytes of a PNG chunk. It begins as ~0; ~crc after the last byte is the CRC-32.
static uint32_t crc_of(uint32_t crc, const unsigned char *bytes, size_t count) {
  for (size_t i = 0; i < count; i++) crc = crc_of_byte[(crc ^ bytes[i]) & 255] ^ crc >> 8;
  return crc;
}

// Returns CQ_IO and leaves the sentence that the image ends within a chunk.
static cq_status cut_off(const char *path) {
  return cq_fail(CQ_IO, "image '%s' is damaged or cut off: it ends within a chunk", path);
}

// Reads through the PNG chunk at the file's position and checks its checksum; sets name, and length [byte] of its data,
// which are not kept. CQ_OK, or CQ_IO: the file ends within it, or the checksum is wrong.
static cq_status read_chunk(FILE *file, const char *path, unsigned char name[4], uint32_t *length) {
  unsigned char head[8], part[4096];
  if (fread(head, 1, sizeof head, file) != sizeof head) return cut_off(path);
  *length = big_endian(head);
  memcpy(name, head + 4, 4);
  uint32_t crc = crc_of(~0u, name, 4);
  for (uint32_t left = *length; left;) {
    size_t some = left < sizeof part ? left : sizeof part;
    if (fread(part, 1, some, file) != some) return cut_off(path);
    crc = crc_of(crc, part, some);
    left -= (uint32_t)some;
  }
  if (fread(head, 1, 4, file) != 4) return cut_off(path);
  if (big_endian(head) != ~crc)
    return cq_fail(CQ_IO, "image '%s' is damaged: the checksum of its chunk %.4s is wrong", path,
                   isalpha(name[0]) ? (const char *)name : "?");
  return CQ_OK;
}

// Checks the checksums and lengths of all chunks, which the decoder does not; sets p->packed. CQ_OK, or CQ_IO, also for
// a picture of more pixels than the compressed bytes can hold, since the decoder allocates what the header asks for:
// deflate packs at most 1032 bytes into one, and a pixel takes at least one bit.
static cq_status check_chunks(FILE *file, const char *path, png *p) {
  unsigned char name[4] = "";
  cq_status status = CQ_OK;
  fill_crc();
  fseek(file, 8, SEEK_SET);
  while (!status && memcmp(name, "IEND", 4)) {
    uint32_t length = 0;
    status = read_chunk(file, path, name, &length);
    if (!memcmp(name, "IDAT", 4)) p->packed += length;
  }
  rewind(file);
  int64_t least = (int64_t)p->height * (1 + (p->width + 7) / 8);
  if (!status && p->packed * DEFLATE_MOST < least)
    status = cq_fail(CQ_IO, "image '%s' is damaged or cut off: %lld bytes cannot hold %u x %u pixels", path,
                     (long long)p->packed, p->width, p->height);
  return status;
}

// Opens a PNG file into *file, checks it, and sets p to its size and compressed bytes, all before decoding; the caller
// closes the file. CQ_OK, or an error with the file closed.
static cq_status open_checked(const char *path, FILE **file, png *p) {
  *p = (png){ .packed = 0 };
  cq_status status = open_png(path, file);
  if (status) return status;
  status = read_header(*file, path, p);
  if (!status) status = check_chunks(*file, path, p);
  if (status) fclose(*file);
  return status;
}

// Sets width and height of a PNG file [pixel]. CQ_OK, CQ_IO, or CQ_INVALID for too large a picture.
cq_status cq_image_size(const char *path, int32_t size[2]) {
  FILE *file;
  png p;
  cq_status status = open_checked(path, &file, &p);
  if (status) return status;
  size[0] = (int32_t)p.width;
  size[1] = (int32_t)p.height;
  fclose(file);
  return CQ_OK;
}

// Reads the pixels of a PNG file into rgba {height, width, 4}, the top row first; bytes: of rgba. CQ_OK, CQ_IO, or
// CQ_INVALID for another size or too large a picture.
cq_status cq_image_read(const char *path, int64_t bytes, uint8_t *rgba) {
  FILE *file;
  png p;
  cq_status status = open_checked(path, &file, &p);
  if (status) return status;
  if (bytes != (int64_t)p.width * p.height * 4) {
    status = cq_fail(CQ_INVALID, "image '%s' is %u x %u pixels: %lld bytes are wanted for it, got %lld", path, p.width,
                     p.height, (long long)p.width * p.height * 4, (long long)bytes);
  } else {
    int width, height, channels;
    unsigned char *pixels = stbi_load_from_file(file, &width, &height, &channels, 4);
    if (pixels) memcpy(rgba, pixels, (size_t)bytes);
    else status = cq_fail(CQ_IO, "image '%s' is damaged or cut off: %s", path, stbi_failure_reason());
    stbi_image_free(pixels);
  }
  fclose(file);
  return status;
}
