# SPDX-License-Identifier: Apache-2.0
# `cpack` makes a tarball and a .deb of what is installed (docs/packages.md). With CT_PORTABLE, which tools/make-packages sets, the libraries
# that the engines' modules load lie in lib/ctitan, but for those of the C and C++ compilers.
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION share/doc/ctitan)
if(CT_PORTABLE)
  if(TARGET engine_gloo)
    install(CODE "
      file(GET_RUNTIME_DEPENDENCIES MODULES \"$<TARGET_FILE:engine_gloo>\" RESOLVED_DEPENDENCIES_VAR found
        DIRECTORIES ${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${CMAKE_SYSROOT}/lib/${CMAKE_LIBRARY_ARCHITECTURE} ${CMAKE_SYSROOT}/usr/lib
        PRE_EXCLUDE_REGEXES \"^(libc|libm|libdl|librt|libpthread|libstdc[+][+]|libgcc_s|ld-linux.*)[.]so\")
      foreach(one \${found})
        file(INSTALL \"\${one}\" DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/ctitan\" TYPE SHARED_LIBRARY FOLLOW_SYMLINK_CHAIN)
      endforeach()")
  endif()
  # tools/make-packages puts the licences of what is linked in or lies beside it here.
  install(DIRECTORY ${CMAKE_BINARY_DIR}/licenses DESTINATION share/doc/ctitan OPTIONAL)
endif()

set(machine ${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_NAME ctitan)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the ctitan developers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM pre-training in C, with TorchTitan's commands")
set(CPACK_PACKAGE_DESCRIPTION "Trains Llama-class models on CPUs, on one process or many. One program, a library with C headers, and headers for plug-ins; no Python.")
set(CPACK_PACKAGE_FILE_NAME ctitan-${PROJECT_VERSION}-linux-${machine})
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
if(machine STREQUAL aarch64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
elseif(machine STREQUAL x86_64)
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
# Ubuntu 22.04 has these; tools/check-elf holds the files to them. The C++ library is for the engine gloo, libcurl for download-assets.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.35), libstdc++6 (>= 12), libgcc-s1")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "libcurl4")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
