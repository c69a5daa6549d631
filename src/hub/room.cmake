# SPDX-License-Identifier: Apache-2.0
# Included by ct_room() with `target` set. Only libcurl's headers are needed: the library is opened by the command that needs it.
find_path(CT_CURL_INCLUDE curl/curl.h)
if(CT_CURL_INCLUDE)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/hub/http_curl.c PROPERTIES COMPILE_DEFINITIONS CTI_HUB_HAS_CURL
                              INCLUDE_DIRECTORIES ${CT_CURL_INCLUDE})
else()
  message(STATUS "libcurl's headers (libcurl4-openssl-dev) not found: `ctitan download-assets` can only say so")
endif()
