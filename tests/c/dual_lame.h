// dual_lame: the elastic constants of engine/physics/lame.h, which is written for double, once more over
// the dual numbers that a test calls dual.
#ifndef TEST_DUAL_LAME_H
#define TEST_DUAL_LAME_H

#if defined(__clang__)
#pragma clang diagnostic ignored "-Wkeyword-macro"
#endif

namespace over_dual {
#define double dual
#include "physics/lame.h"
#undef double
}
#undef CQ_LAME_H
#include "physics/lame.h"

#endif
