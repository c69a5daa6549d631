# SPDX-License-Identifier: Apache-2.0
# Included by ct_room() with `target` set. The one file of this room with a second instruction set; the program asks the CPU first.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/rng_normals_avx2.c PROPERTIES COMPILE_OPTIONS "-mavx2")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/rng_normals.c PROPERTIES COMPILE_DEFINITIONS CTI_RNG_HAS_AVX2)
endif()
