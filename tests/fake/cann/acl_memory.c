/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory and pinned host memory. Both are mapped twice from an anonymous file: device memory at
 * addresses that the program can't touch, pinned memory at addresses that turn untouchable while a queued
 * copy is to fill them; the double itself works on the alias. Blocks begin 64 bytes into a page of their own,
 * between guard bytes, and addresses are never used again. */
#include "acl_internal.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, FILL_BYTE = 0xff }; /* 0xff...: a NaN in every floating type */

static struct region {
    uintptr_t base; /* what the program sees */
    char *alias;
    size_t size, used;
    int file, protection;
    struct block **blocks; /* in the order of their addresses */
    size_t nblocks, room;
} device_region = {.file = -1, .protection = PROT_NONE},
  pinned_region = {.file = -1, .protection = PROT_READ | PROT_WRITE};

static struct block *registered[256]; /* the program's own memory, pinned */
static size_t nregistered;
static unsigned numbers;
static size_t page;

static struct {
    uintptr_t from, to; /* whole pages */
    int slot;
    uint64_t step;
} closed[4096]; /* of pinned memory, until the host has synchronised */
static size_t nclosed;

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) / to * to;
}

/* ---- A program that touches what it must not --------------------------------------------------------- */

static struct sigaction before;

static void on_fault(int number, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    if (is_device_address(at)) {
        fake_trap(FAKE_R_HOST_TOUCHES_DEVICE, "the program touched device memory at %p", info->si_addr);
        _exit(87);
    }
    if (at >= pinned_region.base && at < pinned_region.base + pinned_region.used) {
        fake_trap(
            FAKE_R_PINNED_TOUCHED,
            "the program touched pinned memory at %p, the target of a copy that it has not synchronised with",
            info->si_addr);
        _exit(87);
    }
    if ((before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != NULL) {
        before.sa_sigaction(number, info, context);
        return;
    }
    (void)signal(number, SIG_DFL);
}

/* Reserves address space of as much as the machine allows. */
static void region_open(struct region *region, size_t wanted)
{
    if (region->file >= 0) {
        return;
    }
    page = (size_t)sysconf(_SC_PAGESIZE);
    region->file = memfd_create("fake cann", MFD_CLOEXEC);
    for (size_t size = wanted; region->base == 0 && size >= (size_t)1 << 28; size /= 2) {
        if (region->file < 0 || ftruncate(region->file, (off_t)size) != 0) {
            continue;
        }
        int flags = MAP_SHARED | MAP_NORESERVE;
        void *alias = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, region->file, 0);
        void *base =
            alias == MAP_FAILED ? MAP_FAILED : mmap(NULL, size, region->protection, flags, region->file, 0);
        if (base == MAP_FAILED) {
            if (alias != MAP_FAILED) {
                (void)munmap(alias, size);
            }
            continue;
        }
        (void)madvise(alias, size, MADV_DONTDUMP);
        (void)madvise(base, size, MADV_DONTDUMP);
        region->alias = alias;
        region->base = (uintptr_t)base;
        region->size = size;
    }
    if (region->base == 0) {
        perror("fake cann: address space for device memory");
        abort();
    }
    static bool handler;
    if (!handler) {
        handler = true;
        struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
        (void)sigaction(SIGSEGV, &action, &before);
    }
}

bool is_device_address(uintptr_t address)
{
    return device_region.base != 0 && address >= device_region.base &&
           address < device_region.base + device_region.size;
}

static bool in_region(const struct region *region, uintptr_t address)
{
    return region->base != 0 && address >= region->base && address < region->base + region->size;
}

void *alias_of(uintptr_t address)
{
    if (in_region(&device_region, address)) {
        return device_region.alias + (address - device_region.base);
    }
    if (in_region(&pinned_region, address)) {
        return pinned_region.alias + (address - pinned_region.base);
    }
    return (void *)address; /* NOLINT */
}

void *fake_at(const void *address)
{
    return alias_of((uintptr_t)address);
}

/* ---- Blocks ------------------------------------------------------------------------------------------ */

static struct block *find_in(const struct region *region, uintptr_t address)
{
    size_t low = 0, high = region->nblocks;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (region->blocks[middle]->start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low == 0 || address >= region->blocks[low - 1]->start - GUARD + region->blocks[low - 1]->span
               ? NULL
               : region->blocks[low - 1];
}

struct block *block_find(uintptr_t address)
{
    if (in_region(&device_region, address)) {
        return find_in(&device_region, address);
    }
    if (in_region(&pinned_region, address)) {
        return find_in(&pinned_region, address);
    }
    for (size_t i = 0; i < nregistered; i++) {
        if (address >= registered[i]->start && address < registered[i]->start + registered[i]->size) {
            return registered[i];
        }
    }
    return NULL;
}

bool fake_block_of(const void *address, struct fake_block *out_block)
{
    cann_lock();
    struct block *block = is_device_address((uintptr_t)address) ? block_find((uintptr_t)address) : NULL;
    if (block != NULL) {
        *out_block =
            (struct fake_block){block->start, block->size, block->device, block->freed, block->number};
    }
    cann_unlock();
    return block != NULL;
}

bool fake_is_pinned(const void *address, size_t size)
{
    uintptr_t at = (uintptr_t)address;
    cann_lock();
    struct block *block = is_device_address(at) ? NULL : block_find(at);
    bool is = block != NULL && !block->freed && at + size <= block->start + block->size;
    cann_unlock();
    return is;
}

struct block *block_checked(const char *name, const char *what, uintptr_t address, size_t size, int device)
{
    struct block *block = block_find(address);
    if (block == NULL || address < block->start) {
        fake_trap(FAKE_R_RANGE_UNKNOWN, "%s: %s: %p is no device memory that was ever allocated", name, what,
                  (void *)address); /* NOLINT */
        return NULL;
    }
    if (block->freed) {
        fake_trap(FAKE_R_USE_AFTER_FREE, "%s: %s: block %u (%zu bytes) was freed", name, what, block->number,
                  block->size);
        return NULL;
    }
    size_t offset = address - block->start;
    if (offset > block->size || size > block->size - offset) {
        fake_trap(FAKE_R_RANGE_OUTSIDE, "%s: %s: bytes [%zu, %zu) of block %u, which has %zu", name, what,
                  offset, offset + size, block->number, block->size);
        return NULL;
    }
    if (device >= 0 && block->device >= 0 && block->device != device) {
        fake_trap(FAKE_R_OTHER_DEVICE, "%s: %s: block %u is of device %d, the stream of device %d", name,
                  what, block->number, block->device, device);
        return NULL;
    }
    return block;
}

bool block_busy(const struct block *block, uintptr_t from, uintptr_t to)
{
    if (block->pending != 0) {
        return true;
    }
    return access_unsynced(block, from, to) != NULL;
}

bool guards_whole(const struct block *block)
{
    if (block->registered) {
        return true;
    }
    const unsigned char *start = alias_of(block->start);
    for (size_t i = 0; i < GUARD; i++) {
        if (start[i - GUARD] != GUARD_BYTE || start[block->size + i] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

static void block_add(struct region *region, struct block *block)
{
    if (region->nblocks == region->room) {
        region->room = region->room == 0 ? 64 : 2 * region->room;
        region->blocks = realloc(region->blocks, region->room * sizeof region->blocks[0]);
        if (region->blocks == NULL) {
            abort();
        }
    }
    region->blocks[region->nblocks++] = block;
}

static struct block *block_new(struct region *region, size_t size, int device)
{
    size_t span = round_up(size + 2 * GUARD, page);
    if (span > region->size - region->used) {
        return NULL;
    }
    struct block *block = calloc(1, sizeof *block);
    if (block == NULL) {
        abort();
    }
    *block = (struct block){.start = region->base + region->used + GUARD,
                            .size = size,
                            .span = span,
                            .device = device,
                            .number = ++numbers};
    region->used += span;
    block_add(region, block);
    char *start = alias_of(block->start);
    (void)memset(start - GUARD, GUARD_BYTE, GUARD);
    (void)memset(start + size, GUARD_BYTE, GUARD);
    return block;
}

static void block_gone(struct region *region, struct block *block)
{
    block->freed = true;
    access_forget(block);
    (void)fallocate(region->file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                    (off_t)(block->start - GUARD - region->base), (off_t)block->span);
}

/* Whether the host may let go of the block: no task uses it, and the host has synchronised with all that did.
 */
static bool may_free(const char *name, const struct block *block)
{
    const struct access *access = access_unsynced(block, block->start, block->start + block->size);
    if (block->pending != 0 || access != NULL) {
        fake_trap(FAKE_R_FREE_IN_USE,
                  "%s: block %u (%zu bytes): %s of %s uses it and the host has not synchronised with that",
                  name, block->number, block->size, block->pending != 0 ? "a queued task" : "a task",
                  block->pending != 0 ? block->pending_name : access->name);
        return false;
    }
    if (!guards_whole(block)) {
        fake_trap(FAKE_R_GUARD, "%s: bytes around block %u (%zu bytes) were written", name, block->number,
                  block->size);
    }
    return true;
}

bool device_holds(int device, char *out, size_t size)
{
    size_t blocks = 0, own = 0;
    for (size_t i = 0; i < device_region.nblocks; i++) {
        const struct block *block = device_region.blocks[i];
        if (block->device == device && !block->freed) {
            blocks += !block->own;
            own += block->own;
        }
    }
    const struct device *dev = &cann.devices[device];
    (void)snprintf(out, size, "%d streams, %d events, %zu blocks of memory, %zu buffers of communicators",
                   dev->streams, dev->events, blocks, own);
    return dev->streams != 0 || dev->events != 0 || blocks != 0 || own != 0;
}

/* ---- Device memory ----------------------------------------------------------------------------------- */

size_t device_memory(void)
{
    size_t mib = fake_soc_is("Ascend910B4-1")                              ? 62464
                 : fake_soc_is("Ascend910B4") || fake_soc_is("Ascend910A") ? 30208
                                                                           : 62464;
    return (size_t)switch_number("FAKE_CANN_MEMORY", (long)mib) << 20;
}

static struct block *device_block(int device, size_t size, size_t charged)
{
    region_open(&device_region, (size_t)SPACE_GIB << 30);
    struct device *dev = &cann.devices[device];
    struct block *block = NULL;
    if (charged <= device_memory() && dev->used <= device_memory() - charged) {
        block = block_new(&device_region, size, device);
    }
    if (block != NULL) {
        block->charged = charged;
        dev->used += charged;
        dev->peak = dev->used > dev->peak ? dev->used : dev->peak;
    }
    return block;
}

static int device_malloc(const char *name, void **out, size_t size, int policy, size_t padding)
{
    struct context *context = enter(name);
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (out == NULL || size == 0) {
        return fake_code(FAKE_R_ALLOC_ARGUMENTS, E_INVALID_PARAM, "EH0001: %s: size %zu, result at %p", name,
                         size, (void *)out);
    }
    int policy_kind = policy & 0xff;
    if (policy_kind > 7 || (policy & ~(0xff | 0x100 | 0x1000 | 0x100000)) != 0) {
        return fake_code(FAKE_R_ALLOC_POLICY, E_RT_PARAM, "EE1001: %s: policy %d", name, policy);
    }
    if (lost_code(context->device) != 0) {
        return lost_code(context->device);
    }
    cann_lock();
    size_t charged = round_up(size, 32) + padding;
    struct block *block = fake_fault("oom") ? NULL : device_block(context->device, size, charged);
    if (block == NULL) {
        size_t used = cann.devices[context->device].used, total = device_memory();
        cann_unlock();
        return fake_code(FAKE_R_OUT_OF_MEMORY, E_OOM,
                         "EL0004: %s: %zu bytes on device %d: out of memory (%zu of %zu bytes are free)",
                         name, size, context->device, total - used, total);
    }
    size_t fill = size < (size_t)512 << 20 ? size : (size_t)512 << 20;
    (void)memset(alias_of(block->start), FILL_BYTE, fill);
    *out = (void *)block->start; /* NOLINT */
    fake_live(FAKE_BLOCK, 1);
    cann_unlock();
    return 0;
}

ACL int aclrtMalloc(void **devPtr, size_t size, int policy)
{
    return device_malloc("aclrtMalloc", devPtr, size, policy, fake_soc_is("Ascend950") ? 0 : 32);
}

ACL int aclrtMallocAlign32(void **devPtr, size_t size, int policy)
{
    return device_malloc("aclrtMallocAlign32", devPtr, size, policy, 0);
}

ACL int aclrtMallocCached(void **devPtr, size_t size, int policy)
{
    return device_malloc("aclrtMallocCached", devPtr, size, policy, fake_soc_is("Ascend950") ? 0 : 32);
}

static int device_free(const char *name, void *address, bool own)
{
    if (address == NULL) {
        return fake_code(FAKE_R_FREE_NULL, E_INVALID_PARAM, "EH0001: %s: NULL", name);
    }
    cann_lock();
    int code = 0;
    struct block *block = is_device_address((uintptr_t)address) ? block_find((uintptr_t)address) : NULL;
    if (block == NULL || block->start != (uintptr_t)address || block->own != own) {
        fake_trap(FAKE_R_FREE_UNKNOWN, "%s: %p is not the start of a block of device memory", name, address);
        code = E_INVALID_PARAM;
    } else if (block->freed) {
        fake_trap(FAKE_R_FREE_TWICE, "%s: block %u (%zu bytes) was freed before", name, block->number,
                  block->size);
        code = E_INVALID_PARAM;
    } else if (may_free(name, block)) {
        block_gone(&device_region, block);
        cann.devices[block->device].used -= block->charged;
        fake_live(FAKE_BLOCK, own ? 0 : -1);
    }
    cann_unlock();
    return code;
}

ACL int aclrtFree(void *devPtr)
{
    enter_free("aclrtFree");
    return device_free("aclrtFree", devPtr, false);
}

int aclrtSynchronizeDevice(void);

ACL int aclrtFreeWithDevSync(void *devPtr)
{
    enter_free("aclrtFreeWithDevSync");
    if (devPtr != NULL) {
        int code = aclrtSynchronizeDevice();
        if (code != 0) {
            return code;
        }
    }
    return device_free("aclrtFreeWithDevSync", devPtr, false);
}

void *fake_own_block(size_t size)
{
    int device = fake_device();
    if (device < 0 || size == 0) {
        return NULL;
    }
    cann_lock();
    struct block *block = fake_fault("oom") ? NULL : device_block(device, size, round_up(size, 32));
    if (block != NULL) {
        block->own = true;
    }
    cann_unlock();
    return block == NULL ? NULL : (void *)block->start; /* NOLINT */
}

void fake_own_block_free(void *block)
{
    if (block != NULL) {
        (void)device_free("HcclCommDestroy", block, true);
    }
}

bool fake_synced(const void *address)
{
    cann_lock();
    struct block *block = block_find((uintptr_t)address);
    bool synced = block == NULL || (block->pending == 0 &&
                                    access_unsynced(block, block->start, block->start + block->size) == NULL);
    cann_unlock();
    return synced;
}

int fake_file_of(const void *address, uint64_t *out_offset)
{
    *out_offset = (uintptr_t)address - device_region.base;
    return device_region.file;
}

/* ---- Pinned host memory ------------------------------------------------------------------------------ */

ACL int aclrtMallocHost(void **hostPtr, size_t size)
{
    if (enter("aclrtMallocHost") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (hostPtr == NULL || size == 0) {
        return fake_code(FAKE_R_ALLOC_ARGUMENTS, E_INVALID_PARAM,
                         "EH0001: aclrtMallocHost: size %zu, result at %p", size, (void *)hostPtr);
    }
    cann_lock();
    region_open(&pinned_region, (size_t)SPACE_GIB << 28);
    struct block *block = fake_fault("oom_host") ? NULL : block_new(&pinned_region, size, -1);
    if (block != NULL) {
        *hostPtr = (void *)block->start; /* NOLINT */
        fake_live(FAKE_PINNED, 1);
    }
    cann_unlock();
    return block != NULL ? 0
                         : fake_code(FAKE_R_OUT_OF_MEMORY, E_OOM,
                                     "EL0004: aclrtMallocHost: %zu bytes: out of memory", size);
}

ACL int aclrtFreeHost(void *hostPtr)
{
    enter_free("aclrtFreeHost");
    if (hostPtr == NULL) {
        return fake_code(FAKE_R_FREE_NULL, E_INVALID_PARAM, "EH0001: aclrtFreeHost: NULL");
    }
    cann_lock();
    int code = 0;
    struct block *block =
        in_region(&pinned_region, (uintptr_t)hostPtr) ? block_find((uintptr_t)hostPtr) : NULL;
    if (block == NULL || block->start != (uintptr_t)hostPtr) {
        fake_trap(FAKE_R_FREE_UNKNOWN, "aclrtFreeHost: %p is not the start of memory of aclrtMallocHost",
                  hostPtr);
        code = E_INVALID_PARAM;
    } else if (block->freed) {
        fake_trap(FAKE_R_FREE_TWICE, "aclrtFreeHost: block %u was freed before", block->number);
        code = E_INVALID_PARAM;
    } else if (may_free("aclrtFreeHost", block)) {
        block_gone(&pinned_region, block);
        (void)mprotect((void *)(block->start - GUARD), block->span, PROT_NONE); /* NOLINT */
        fake_live(FAKE_PINNED, -1);
    }
    cann_unlock();
    return code;
}

static int host_register(const char *name, void *ptr, uint64_t size)
{
    if (ptr == NULL || size == 0) {
        return fake_code(FAKE_R_REGISTER_ARGUMENTS, E_INVALID_PARAM, "EH0001: %s: %p, %llu bytes", name, ptr,
                         (unsigned long long)size);
    }
    cann_lock();
    uintptr_t at = (uintptr_t)ptr;
    bool known = in_region(&device_region, at) || in_region(&pinned_region, at) || nregistered == 256;
    for (size_t i = 0; i < nregistered; i++) {
        known =
            known || (at < registered[i]->start + registered[i]->size && registered[i]->start < at + size);
    }
    if (!known) {
        struct block *block = calloc(1, sizeof *block);
        if (block == NULL) {
            abort();
        }
        *block = (struct block){
            .start = at, .size = size, .span = size, .device = -1, .number = ++numbers, .registered = true};
        registered[nregistered++] = block;
        fake_live(FAKE_REGISTERED, 1);
    }
    cann_unlock();
    return !known ? 0
                  : fake_code(FAKE_R_REGISTER_ARGUMENTS, E_INVALID_PARAM,
                              "EE1001: %s: %p is registered already", name, ptr);
}

ACL int aclrtHostRegister(void *ptr, uint64_t size, int type, void **devPtr)
{
    if (enter("aclrtHostRegister") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (devPtr == NULL || (type != 0 && type != 4 && type != 8)) {
        return fake_code(FAKE_R_REGISTER_ARGUMENTS, E_INVALID_PARAM,
                         "EH0001: aclrtHostRegister: type %d, result at %p", type, (void *)devPtr);
    }
    int code = host_register("aclrtHostRegister", ptr, size);
    *devPtr = code == 0 ? ptr : NULL;
    return code;
}

ACL int aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
{
    (void)flag;
    return enter("aclrtHostRegisterV2") == NULL ? E_RT_CONTEXT_NULL
                                                : host_register("aclrtHostRegisterV2", ptr, size);
}

ACL int aclrtHostUnregister(void *ptr)
{
    if (enter("aclrtHostUnregister") == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (ptr == NULL) {
        return fake_code(FAKE_R_FREE_NULL, E_INVALID_PARAM, "EH0001: aclrtHostUnregister: NULL");
    }
    cann_lock();
    size_t i = 0;
    while (i < nregistered && registered[i]->start != (uintptr_t)ptr) {
        i++;
    }
    if (i == nregistered) {
        fake_trap(FAKE_R_FREE_UNKNOWN, "aclrtHostUnregister: %p is not registered", ptr);
        cann_unlock();
        return E_INVALID_PARAM;
    }
    if (may_free("aclrtHostUnregister", registered[i])) {
        access_forget(registered[i]);
        free(registered[i]);
        registered[i] = registered[--nregistered];
        fake_live(FAKE_REGISTERED, -1);
    }
    cann_unlock();
    return 0;
}

/* Pages that lie whole in [from, to) can't be touched by the program until the host has synchronised with the
 * step. */
void pinned_protect(uintptr_t from, uintptr_t to, int slot, uint64_t step)
{
    uintptr_t first = round_up(from, page), last = to / page * page;
    if (first >= last || !in_region(&pinned_region, from) || nclosed == sizeof closed / sizeof closed[0]) {
        return;
    }
    (void)mprotect((void *)first, last - first, PROT_NONE); /* NOLINT */
    closed[nclosed].from = first;
    closed[nclosed].to = last;
    closed[nclosed].slot = slot;
    closed[nclosed++].step = step;
}

void pinned_release(void)
{
    snapshots_release();
    size_t kept = 0, n = nclosed;
    for (size_t i = 0; i < n; i++) {
        if (closed[i].step <= cann.host.at[closed[i].slot]) {
            (void)mprotect((void *)closed[i].from, closed[i].to - closed[i].from,
                           PROT_READ | PROT_WRITE); /* NOLINT */
        } else {
            closed[kept++] = closed[i];
        }
    }
    nclosed = kept;
    for (size_t i = 0; n != kept && i < kept; i++) { /* those that overlapped an opened one */
        (void)mprotect((void *)closed[i].from, closed[i].to - closed[i].from, PROT_NONE); /* NOLINT */
    }
}

/* ---- Questions --------------------------------------------------------------------------------------- */

ACL int aclrtGetMemInfo(int attr, size_t *free_bytes, size_t *total)
{
    struct context *context = enter("aclrtGetMemInfo");
    if (context == NULL) {
        return E_RT_CONTEXT_NULL;
    }
    if (free_bytes == NULL || total == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtGetMemInfo: a result is NULL");
    }
    bool hbm = attr == 1 || attr == 4 || attr == 5 || attr == 12 ||
               attr == 13; /* HBM and its huge and normal pages */
    cann_lock();
    *total = hbm ? device_memory() : 0;
    *free_bytes = hbm ? device_memory() - cann.devices[context->device].used : 0;
    cann_unlock();
    return lost_code(context->device);
}

struct usage {
    char name[32];
    uint64_t now, peak;
    size_t reserved[8];
};

ACL int aclrtGetMemUsageInfo(int32_t deviceId, struct usage *info, size_t inputNum, size_t *outputNum)
{
    enter_free("aclrtGetMemUsageInfo");
    if (info == NULL || outputNum == NULL || inputNum == 0) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtGetMemUsageInfo: a result is NULL");
    }
    if (deviceId < 0 || deviceId >= visible_devices(NULL, NULL, 0)) {
        return fake_code(FAKE_R_DEVICE_ID, E_RT_DEVICE, "EE1001: aclrtGetMemUsageInfo: device %d", deviceId);
    }
    cann_lock();
    *info = (struct usage){
        .name = "app", .now = cann.devices[deviceId].used, .peak = cann.devices[deviceId].peak};
    *outputNum = 1;
    cann_unlock();
    return 0;
}

struct attributes {
    uint32_t id;
    int32_t type; /* 0 host, 1 device, 2 unregistered */
    uint32_t page_size, reserved[4];
};

ACL int aclrtPointerGetAttributes(const void *ptr, struct attributes *attributes)
{
    enter_free("aclrtPointerGetAttributes");
    if (ptr == NULL || attributes == NULL) {
        return fake_code(FAKE_R_NULL_OUT, E_INVALID_PARAM, "EH0001: aclrtPointerGetAttributes: NULL");
    }
    cann_lock();
    struct block *block = block_find((uintptr_t)ptr);
    *attributes = (struct attributes){.type = fake_version() < 900 ? 0 : 2};
    if (block != NULL && block->device >= 0) {
        *attributes = (struct attributes){.id = (uint32_t)block->device, .type = 1, .page_size = 2u << 20};
    } else if (block != NULL) {
        *attributes = (struct attributes){.type = 0, .page_size = 4096};
    }
    cann_unlock();
    return 0;
}
