# SPDX-License-Identifier: Apache-2.0
# Included by ct_room() with `target` set: the kernels, compiled once per instruction-set level, whose name is the suffix of its
# symbols. On other machines than x86-64 there is the compiler's own baseline alone, called neon on aarch64.
file(GLOB CTI_CPU_KERNELS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/backend/cpu/isa/*.c)
set(CTI_CPU_LEVELS base)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(CTI_CPU_LEVELS neon)
endif()
set(CTI_CPU_INTRINSICS "")
set(CTI_CPU_DEFINITIONS "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND CTI_CPU_LEVELS v3 v4 v4bf16 v4amx)
  set(CTI_CPU_DEFINITIONS CTI_CPU_X86_LEVELS)
  set(CTI_CPU_INTRINSICS "SHELL:-include immintrin.h") # before banned.h: it brings mm_malloc.h, which says malloc
endif()
set(CTI_CPU_FLAGS_base "")
set(CTI_CPU_FLAGS_neon "")
set(CTI_CPU_FLAGS_v3 -march=x86-64-v3)
set(CTI_CPU_FLAGS_v4 -march=x86-64-v4 -mprefer-vector-width=512)
set(CTI_CPU_FLAGS_v4bf16 ${CTI_CPU_FLAGS_v4} -mavx512bf16)
set(CTI_CPU_FLAGS_v4amx ${CTI_CPU_FLAGS_v4bf16} -mamx-tile -mamx-bf16)
set(CTI_CPU_FLAGS_model -O2) # its vectors are many instructions: with more optimisation it takes a compiler minutes
set(CTI_CPU_DEFINITIONS_v4amx CTI_CPU_WANTS_AMX)
set(CTI_CPU_DEFINITIONS_model CTI_CPU_WIDE_MODEL CTI_CPU_BF16_MODEL CTI_CPU_AMX_MODEL)
target_compile_definitions(${target} PRIVATE ${CTI_CPU_DEFINITIONS})
# The level `model` is the tests': AVX-512's lanes, dot products and tiles in plain C, for machines that lack them.
foreach(level ${CTI_CPU_LEVELS} model)
  add_library(ct_backend_cpu_${level} OBJECT ${CTI_CPU_KERNELS})
  target_link_libraries(ct_backend_cpu_${level} PRIVATE ct_flags)
  target_compile_definitions(ct_backend_cpu_${level} PRIVATE CTI_CPU_ISA=${level} ${CTI_CPU_DEFINITIONS}
    ${CTI_CPU_DEFINITIONS_${level}})
  # Kernels are optimised in debug builds too: nothing else of them is usable.
  target_compile_options(ct_backend_cpu_${level} PRIVATE -O3 ${CTI_CPU_FLAGS_${level}} -Wno-psabi
    ${CTI_CPU_INTRINSICS} "SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/banned.h")
  if(NOT level STREQUAL model)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:ct_backend_cpu_${level}>)
  endif()
endforeach()
set_target_properties(ct_backend_cpu_model PROPERTIES EXCLUDE_FROM_ALL ON)
