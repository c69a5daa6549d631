/* SPDX-License-Identifier: Apache-2.0 */
/* Force-included in every C file of ours outside base/: host memory comes from a ct_alloc, text from cti_str. */
#ifndef CTI_BASE_BANNED_H
#define CTI_BASE_BANNED_H

/* Headers that use these words legitimately come first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC poison malloc calloc realloc strdup strndup strcpy strcat sprintf vsprintf strtok atoi atol atof rand srand gets
#endif
