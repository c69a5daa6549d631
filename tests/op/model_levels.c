/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: backend/cpu backend/cpu_model backend/ref backend ops ir mesh base */
/* labels: slow */
/* cpu_levels.c at 16 lanes, with dot products and tiles of bf16, in plain C. */
#define CT_MODEL_LEVEL
#include "cpu_levels.c" /* NOLINT(bugprone-suspicious-include) */
