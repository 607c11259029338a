// A developer's build that holds some kernels only: the Makefile links this test with those of 2D float32 for the
// baseline and of 3D float64 for AVX-512.
#include "check.h"
#include "cpu/kernels.h"
#include "scene.h"

static void check_world(int dim, int precision, int simd, const char *words) {
  test_scene s;
  test_scene_make(&s, dim, 4, precision, 1);
  s.def.device = CQ_DEVICE_CPU;
  s.def.simd = simd;
  cq_world *world = NULL;
  const cq_status status = cq_world_create(&s.def, &world);
  if (words)
    CHECK(status == CQ_INVALID && strstr(cq_error(), words),
          "%dD, precision %d, simd %d: status %d, \"%s\" (\"%s\" wanted)", dim, precision, simd, (int)status,
          cq_error(), words);
  else
    CHECK(status == CQ_OK, "%dD, precision %d, simd %d: status %d, \"%s\"", dim, precision, simd, (int)status,
          cq_error());
  if (!status) cq_world_destroy(world);
  test_scene_free(&s);
}

int main(void) {
  check_world(2, CQ_FLOAT32, 0, NULL);
  check_world(2, CQ_FLOAT32, 1, NULL);
  check_world(2, CQ_FLOAT64, 0,
              "this build has no 2D float64 kernels: `make` builds all kernels, `make KERNELS=2.8` these alone");
  check_world(3, CQ_FLOAT32, 0, "this build has no 3D float32 kernels");
  check_world(3, CQ_FLOAT32, 1, "this build has no 3D float32 kernels");
  check_world(2, CQ_FLOAT32, 2, "simd level 2 is not one of this machine; 0 takes the best, 1 is the baseline");
#if defined(__x86_64__)
  const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  check_world(3, CQ_FLOAT64, 0, avx512 ? NULL : "this build's 3D float64 kernels are not for this machine");
  check_world(3, CQ_FLOAT64, 1, "this build's 3D float64 kernels are not for the simd level that was asked for");
  check_world(2, CQ_FLOAT32, 3,
              __builtin_cpu_supports("avx2") ? "not for the simd level" : "is not one of this machine");
#endif
  return check_report();
}
