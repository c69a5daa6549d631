# SPDX-License-Identifier: Apache-2.0
# ct_room(path deps...): one static library per room, so that a room can be built and tested alone.
# All flags live on the interface target ct_flags, guarded by language.
add_library(ct_flags INTERFACE)
target_include_directories(ct_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_compile_definitions(ct_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64 CT_VERSION="${PROJECT_VERSION}")
set(CT_C_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Wdouble-promotion -Wformat=2 -Wundef
    -Wvla -Wwrite-strings -Wswitch-enum -Wstrict-prototypes -Wmissing-prototypes)
target_compile_options(ct_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:${CT_C_WARNINGS}> -ffp-contract=off -fno-math-errno
                       -fno-strict-aliasing)
if(CT_WERROR)
  target_compile_options(ct_flags INTERFACE $<$<COMPILE_LANGUAGE:C>:-Werror>)
endif()
if(CT_SANITIZE)
  target_compile_options(ct_flags INTERFACE -fsanitize=${CT_SANITIZE} -fno-omit-frame-pointer -g)
  target_link_options(ct_flags INTERFACE -fsanitize=${CT_SANITIZE})
endif()
target_link_libraries(ct_flags INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

set(CT_ROOMS "" CACHE INTERNAL "")
function(ct_room path)
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}/*.c ${CMAKE_SOURCE_DIR}/src/${path}/*.cc)
  set(target ct_${name})
  if(sources)
    add_library(${target} STATIC ${sources})
    target_link_libraries(${target} PUBLIC ct_flags)
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ct_flags)
    set(scope INTERFACE)
  endif()
  if(NOT path STREQUAL base AND sources)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:C>:SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/banned.h>")
  endif()
  foreach(dep ${ARGN})
    string(REPLACE "/" "_" dep ${dep})
    if(TARGET ct_${dep}) # a room that this build leaves out is nobody's dependency
      target_link_libraries(${target} ${scope} ct_${dep})
    endif()
  endforeach()
  if(path STREQUAL base)
    target_link_libraries(${target} ${scope} PkgConfig::JANSSON PkgConfig::YAML PkgConfig::XXHASH PkgConfig::ZLIB PkgConfig::ZSTD)
  elseif(path STREQUAL tokenizer)
    target_link_libraries(${target} ${scope} PkgConfig::PCRE2 PkgConfig::UTF8PROC)
  elseif(path STREQUAL jinja)
    target_link_libraries(${target} ${scope} PkgConfig::UTF8PROC)
  elseif(path STREQUAL comm/gloo AND sources)
    target_include_directories(${target} PRIVATE ${CT_GLOO_INCLUDE})
    target_link_libraries(${target} ${scope} ${CT_GLOO_LIB})
  endif()
  if(sources AND EXISTS ${CMAKE_SOURCE_DIR}/src/${path}/room.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${path}/room.cmake)
  endif()
  set(CT_ROOMS "${CT_ROOMS};${target}" CACHE INTERNAL "")
endfunction()

# ct_engine(comm/NAME deps...): a room that is a module, lib/ctitan/engines/NAME.so (src/comm/module.h). It takes the program's functions.
function(ct_engine path)
  get_filename_component(name ${path} NAME)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${path}/*.c)
  add_library(engine_${name} MODULE ${sources})
  set_target_properties(engine_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/ctitan/engines)
  target_link_libraries(engine_${name} PRIVATE ct_flags)
  target_compile_options(engine_${name} PRIVATE "SHELL:-include ${CMAKE_SOURCE_DIR}/src/base/banned.h")
  include(${CMAKE_SOURCE_DIR}/src/${path}/room.cmake)
  install(TARGETS engine_${name} LIBRARY DESTINATION lib/ctitan/engines)
endfunction()

# The same from the objects of a room: MPI's and Gloo's own libraries are loaded with the module, not with the program. It finds the ones that a
# package brings beside it, and they each other, by its DT_RPATH (which a DT_RUNPATH is not: it does not count for what they load).
function(ct_engine_of_room path)
  get_filename_component(name ${path} NAME)
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/engine.c CONTENT "typedef int ct_nothing;\n" @ONLY) # a module must have a file of its own
  add_library(engine_${name} MODULE ${CMAKE_BINARY_DIR}/engine.c)
  set_target_properties(engine_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name} LINKER_LANGUAGE CXX
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/ctitan/engines INSTALL_RPATH "$ORIGIN/..")
  target_link_libraries(engine_${name} PRIVATE -Wl,--whole-archive $<TARGET_FILE:ct_comm_${name}> -Wl,--no-whole-archive ${CT_GLOO_LIB}
                        -Wl,--disable-new-dtags)
  if(CT_SANITIZE)
    target_link_options(engine_${name} PRIVATE -fsanitize=${CT_SANITIZE})
  endif()
  add_dependencies(engine_${name} ct_comm_${name})
  set_property(TARGET engine_${name} APPEND PROPERTY LINK_DEPENDS $<TARGET_FILE:ct_comm_${name}>)
  install(TARGETS engine_${name} LIBRARY DESTINATION lib/ctitan/engines)
endfunction()

# Every room in one target, for the program and for tests that need all of it.
function(ct_finish)
  add_library(ct_all INTERFACE)
  foreach(room ${CT_ROOMS})
    if(room STREQUAL ct_comm_gloo) # a module
      continue()
    endif()
    target_link_libraries(ct_all INTERFACE ${room})
  endforeach()
endfunction()
