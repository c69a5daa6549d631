/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders. Every failure names the path and the system's reason. */
#ifndef CTI_BASE_FILE_H
#define CTI_BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ctitan/alloc.h"

/* Whole file; *out_data is NUL-terminated one byte past *out_size. Refuses files above max_bytes (0: no limit),
 * folders, and names them. Caller frees with ct_alloc_free. */
CT_MUST_CHECK ct_status cti_file_read(const ct_alloc *alloc, const char *path, size_t max_bytes, char **out_data,
                                      size_t *out_size, ct_err *err);

/* Read-only map of a whole file (an empty file maps to data = "" with size 0). */
typedef struct cti_file_map {
    const unsigned char *data; /* owns (mapped) */
    size_t size;
} cti_file_map;
CT_MUST_CHECK ct_status cti_file_map_open(const char *path, cti_file_map *out_map, ct_err *err);
void cti_file_map_close(cti_file_map *map);

/* Writes to "<path>.tmp.<pid>", fsyncs, renames, fsyncs the folder: readers see the old or the new file whole. */
CT_MUST_CHECK ct_status cti_file_write_atomic(const char *path, const void *data, size_t size, ct_err *err);
CT_MUST_CHECK ct_status cti_fsync_path(const char *path, ct_err *err); /* file or folder */

bool cti_path_exists(const char *path);
bool cti_path_is_dir(const char *path);
bool cti_path_is_file(const char *path);
CT_MUST_CHECK ct_status cti_file_size(const char *path, int64_t *out_size, ct_err *err);
CT_MUST_CHECK ct_status cti_make_dirs(const char *path, ct_err *err); /* as mkdir -p, mode 0777 & ~umask */
CT_MUST_CHECK ct_status cti_remove_tree(const char *path, ct_err *err); /* symbolic links are not followed */
CT_MUST_CHECK ct_status cti_rename(const char *from, const char *to, ct_err *err);
/* Locks the folder itself for this process, until the descriptor is closed or the process ends: nothing is left in it. *out_fd is -1 where
 * it cannot, and *out_errno says why: EWOULDBLOCK where another process has it, else the file system has no locks. */
CT_MUST_CHECK ct_status cti_lock_folder(const char *path, int *out_fd, int *out_errno, ct_err *err);
bool cti_is_same_file(int fd, const char *path); /* whether the path leads to what the descriptor is open on */
/* Free bytes on the file system that holds path (or its nearest existing parent). */
CT_MUST_CHECK ct_status cti_disk_free_bytes(const char *path, int64_t *out_bytes, ct_err *err);

/* Names in a folder without "." and "..", sorted bytewise. Free with cti_names_free. */
typedef struct cti_names {
    char **names; /* owns */
    size_t n;
} cti_names;
CT_MUST_CHECK ct_status cti_list_dir(const ct_alloc *alloc, const char *path, cti_names *out_names, ct_err *err);
void cti_names_free(const ct_alloc *alloc, cti_names *names);

/* a + "/" + b, or b alone where it is absolute or a is empty. NULL and err where memory ran out. */
char *cti_path_join(const ct_alloc *alloc, const char *a, const char *b, ct_err *err);
const char *cti_path_base(const char *path); /* after the last '/' */

#endif
