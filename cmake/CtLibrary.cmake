# SPDX-License-Identifier: Apache-2.0
# libctitan.so: the same rooms as the program, as a library that exports what include/ctitan declares and nothing else.
#
# The list of exports is read from the headers when CMake runs: every function and object that they declare.
file(GLOB CT_PUBLIC_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/ctitan/*.h)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CT_PUBLIC_HEADERS})
set(all "")
foreach(header ${CT_PUBLIC_HEADERS})
  file(RELATIVE_PATH header ${CMAKE_SOURCE_DIR}/include ${header})
  string(APPEND all "#include \"${header}\"\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/public.c CONTENT "${all}" @ONLY)
execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P -I${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/public.c
                OUTPUT_VARIABLE all COMMAND_ERROR_IS_FATAL ANY)
# A name before a '(' is a function, also where a macro made the declaration; `extern … name;` is an object. Other names of that form (calls
# in inline functions) are declared too, or are no symbols and harm nothing.
string(REGEX MATCHALL "[^a-zA-Z0-9_]ct_[a-z0-9_]+ ?\\(" functions "${all}")
string(REGEX MATCHALL "extern const [a-z_]+ ct_[a-z0-9_]+;" objects "${all}")
set(names "")
foreach(found ${functions})
  string(REGEX REPLACE "^.(ct_[a-z0-9_]+).*$" "\\1" found "${found}")
  list(APPEND names ${found})
endforeach()
string(REGEX REPLACE "extern const [a-z_]+ (ct_[a-z0-9_]+)" "\\1" objects "${objects}")
list(APPEND names ${objects})
list(REMOVE_DUPLICATES names)
list(REMOVE_ITEM names "")
list(SORT names)
list(JOIN names ";\n    " lines)
# Engines (src/comm/module.h) are parts of the same version, and take what they need of the rooms comm and base.
set(private "ct_bootstrap_*;\n    ct_comm_*;\n    cti_comm_*;\n    cti_parse_i64;\n    cti_now_ns;\n    cti_format_*")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/libctitan.map CONTENT "CTITAN_${PROJECT_VERSION_MAJOR} {\n  global:\n    ${lines};\n  local:\n    *;\n};
CTITAN_ENGINES_${PROJECT_VERSION} {\n  global:\n    ${private};\n};\n" @ONLY)

add_library(ctitan_library SHARED ${CMAKE_BINARY_DIR}/public.c) # a library must have a file of its own: one that reads all headers
# As in the program: plug-ins and engines take these rooms' functions, so all of them are there, used or not.
target_link_libraries(ctitan_library PRIVATE
  -Wl,--whole-archive ct_base ct_ir ct_ops ct_config ct_component ct_comm ct_library -Wl,--no-whole-archive ct_library)
# Calls within stay within, whatever the process defines; the threads that compute live as long as the process, and so does their code.
target_link_options(ctitan_library PRIVATE -Wl,--version-script=${CMAKE_BINARY_DIR}/libctitan.map -Wl,-Bsymbolic -Wl,-z,nodelete)
if(CT_PORTABLE)
  # Distributions compile static libraries for programs. The one place where that cannot be part of a shared library is jansson's look at
  # `stdin`, for a name in its messages about streams, which nothing here reads from: it gets an object of ours.
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/stdin.c CONTENT "extern void *__wrap_stdin;\nvoid *__wrap_stdin;\n" @ONLY)
  target_sources(ctitan_library PRIVATE ${CMAKE_BINARY_DIR}/stdin.c)
  target_link_options(ctitan_library PRIVATE -Wl,--wrap=stdin)
endif()
set_target_properties(ctitan_library PROPERTIES OUTPUT_NAME ctitan VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
                      LINKER_LANGUAGE C LINK_DEPENDS ${CMAKE_BINARY_DIR}/libctitan.map)
# Always lib: it finds <prefix>/share/ctitan beside it.
install(TARGETS ctitan_library LIBRARY DESTINATION lib)
configure_file(${CMAKE_SOURCE_DIR}/cmake/ctitan.pc.in ${CMAKE_BINARY_DIR}/ctitan.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/ctitan.pc DESTINATION lib/pkgconfig)
