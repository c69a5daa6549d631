/* SPDX-License-Identifier: Apache-2.0 */
/* The shared memory where the ranks of a communicator meet. Its name goes when all have come, or when the
 * process that made it ends. */
#include "hccl_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct meeting *map_file(int file)
{
    if (file < 0 || ftruncate(file, sizeof(struct meeting)) != 0) {
        return NULL;
    }
    void *at = mmap(NULL, sizeof(struct meeting), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

struct meeting *meet_open(const char *name, bool create)
{
    int file = shm_open(name, O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
    struct meeting *meeting = map_file(file);
    if (file >= 0) {
        (void)close(file);
    }
    return meeting;
}

/* Takes away what processes left that were killed before their ranks had met. */
static void unlink_dead(void)
{
    DIR *folder = opendir("/dev/shm");
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        int pid = 0;
        if (sscanf(entry->d_name, "fake_hccl_%d_", &pid) == 1 && kill(pid, 0) != 0 && errno == ESRCH) {
            (void)shm_unlink(entry->d_name);
        }
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
}

struct meeting *meet_create(const char *name)
{
    unlink_dead();
    struct meeting *meeting = meet_open(name, true);
    struct hccl *hccl = hccl_state();
    fake_shared_lock();
    if (meeting != NULL && hccl->nmade < 256) {
        (void)snprintf(hccl->made[hccl->nmade++], NAME_BYTES, "%s", name);
    }
    fake_shared_unlock();
    return meeting;
}

void meet_close(struct meeting *meeting)
{
    if (meeting != NULL) {
        (void)munmap(meeting, sizeof *meeting);
    }
}

void meet_unlink(const char *name)
{
    (void)shm_unlink(name);
}

__attribute__((destructor)) static void unlink_all(void)
{
    struct hccl *hccl = hccl_state();
    for (int i = 0; i < hccl->nmade; i++) {
        (void)shm_unlink(hccl->made[i]);
    }
}
