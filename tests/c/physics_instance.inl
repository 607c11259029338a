// physics_instance: math and physics over the real and Real of the namespace that includes this, in CQ_DIM dimensions.
#include "math/real.h"
#include "math/matrix.inl"
#include "math/polar.inl"
#include "math/spline.inl"
#include "physics/material.inl"
#include "physics/actuation.inl"
#include "physics/contact.inl"
#include "physics/transfer.inl"
