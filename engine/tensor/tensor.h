// tensor: what the files of this room share.
#ifndef CQ_TENSOR_H
#define CQ_TENSOR_H

#include "../base/base.h"

// The sum of `count` numbers in one fixed order, in eight partial sums so that it is fast and its rounding error grows
// slowly.
double cq_tensor_sum(int64_t count, const double *x);

#endif
