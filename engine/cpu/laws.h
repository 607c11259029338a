// laws: names of the functions that kernels.c calls in laws.c, for each CQ_DIM, CQ_REAL_BYTES and CQ_SIMD: those that
// physics/material.inl declares.
#ifndef CQ_LAWS_H
#define CQ_LAWS_H

#define CQ_LAW __attribute__((noinline, visibility("hidden")))

#define CQ_LAW_JOIN_(name, a, b, c) cq_##name##_##a##_##b##_##c
#define CQ_LAW_JOIN(name, a, b, c) CQ_LAW_JOIN_(name, a, b, c)
#define CQ_LAW_NAME(name) CQ_LAW_JOIN(name, CQ_DIM, CQ_REAL_BYTES, CQ_SIMD)

#define law_energy CQ_LAW_NAME(law_energy)
#define law_stress CQ_LAW_NAME(law_stress)
#define law_stress_derivative CQ_LAW_NAME(law_stress_derivative)
#define law_grad_constants CQ_LAW_NAME(law_grad_constants)
#define law_energy_grad CQ_LAW_NAME(law_energy_grad)
#define law_piola_zz CQ_LAW_NAME(law_piola_zz)
#define law_piola_zz_adj CQ_LAW_NAME(law_piola_zz_adj)
#define material_update CQ_LAW_NAME(material_update)
#define material_update_adj CQ_LAW_NAME(material_update_adj)

#endif
