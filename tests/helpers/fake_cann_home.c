/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* fake_cann_home FROM TO [--cann 8.1] [--without NAME,NAME...] [--split] [--hcomm] [--no LIBRARY]...
 *
 * Makes the folder TO, for ASCEND_HOME_PATH, from the doubles of the folder FROM (build/<x>/fake_cann): the
 * same libraries without some of their functions, which dlsym() then does not find. --cann 8.1 takes away
 * what came later; --split lays the operators out as releases from 8.5 on do, in libopapi_math, _nn and
 * _transformer, without libopapi; --hcomm moves the management of communicators to libhcomm; --no leaves a
 * library out. tests/fake/cann/README.md has examples. */
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char since_9[] =
    "aclFinalizeReference,aclrtGetDeviceInfo,aclrtStreamWaitEventWithTimeout,aclrtLaunchHostFunc,"
    "aclrtCtxGetCurrentDefaultStream,"
    "aclrtDeviceGetUuid,aclrtReduceAsync,aclrtSetOpExecuteTimeOutV2,aclrtGetErrorVerbose,"
    "aclrtGetStreamAvailableNum,aclrtGetEventAvailNum,"
    "aclrtGetMemUsageInfo,aclrtGetPhyDevIdByLogicDevId,aclrtGetLogicDevIdByPhyDevId,aclsysGetVersionStr,"
    "aclsysGetVersionNum,"
    "aclrtFreeWithDevSync,aclrtHostRegisterV2,aclrtHostGetDevicePointer,HcclGetConfig";
static const char management[] = "HcclGetRootInfo,HcclCommInitRootInfo,HcclCommInitRootInfoConfig,"
                                 "HcclCreateSubCommConfig,HcclCommDestroy,HcclGetRankSize,HcclGetRankId,"
                                 "HcclGetCommName,HcclGetCommAsyncError,HcclGetErrorString,"
                                 "HcclGetCommConfigCapability,HcclSetConfig,HcclGetConfig";
static const char transfers[] = "HcclAllReduce,HcclBroadcast,HcclReduceScatter,HcclAllGather,HcclReduce,"
                                "HcclScatter,HcclAlltoAll,HcclAlltoAllV,HcclBarrier,HcclSend,HcclRecv,"
                                "HcclBatchSendRecv";

static void die(const char *what, const char *name)
{
    (void)fprintf(stderr, "fake_cann_home: %s '%s': %s\n", what, name, strerror(errno));
    exit(1);
}

/* Whether the list (commas) has the name. */
static bool listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0';
         at = strchr(at, ',') == NULL ? NULL : strchr(at, ',') + 1) {
        if (strncmp(at, name, length) == 0 && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        return NULL;
    }
    (void)fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    char *bytes = malloc(*size);
    if (bytes == NULL || fread(bytes, 1, *size, file) != *size) {
        die("can't read", path);
    }
    (void)fclose(file);
    return bytes;
}

/* Makes the listed symbols of the library hidden: its own calls still find them, dlsym() does not. */
static void hide(char *elf, const char *list)
{
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)elf;
    Elf64_Shdr *sections = (Elf64_Shdr *)(void *)(elf + header->e_shoff);
    for (int i = 0; i < header->e_shnum; i++) {
        if (sections[i].sh_type != SHT_DYNSYM) {
            continue;
        }
        const char *names = elf + sections[sections[i].sh_link].sh_offset;
        Elf64_Sym *symbols = (Elf64_Sym *)(void *)(elf + sections[i].sh_offset);
        for (size_t k = 0; k < sections[i].sh_size / sizeof symbols[0]; k++) {
            if (symbols[k].st_shndx != SHN_UNDEF && listed(list, names + symbols[k].st_name)) {
                symbols[k].st_other = STV_HIDDEN;
            }
        }
    }
}

struct options {
    const char *from, *to, *without[3];
    const char *no[8];
    int nno;
    bool split, hcomm;
};

/* Copies FROM/lib64/`library`.so to TO/lib64/`as`.so, less what is taken away. */
static void copy(const struct options *options, const char *library, const char *as, const char *less)
{
    for (int i = 0; i < options->nno; i++) {
        if (strcmp(options->no[i], as) == 0) {
            return;
        }
    }
    char path[4096];
    size_t size = 0;
    (void)snprintf(path, sizeof path, "%s/lib64/%s.so", options->from, library);
    char *elf = read_file(path, &size);
    if (elf == NULL) {
        return;
    }
    for (int i = 0; i < 3; i++) {
        hide(elf, options->without[i]);
    }
    hide(elf, less);
    (void)snprintf(path, sizeof path, "%s/lib64/%s.so", options->to, as);
    FILE *file = fopen(path, "wb");
    if (file == NULL || fwrite(elf, 1, size, file) != size || fclose(file) != 0) {
        die("can't write", path);
    }
    free(elf);
}

int main(int argc, char **argv)
{
    struct options options = {0};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--cann") == 0) {
            options.without[0] = strncmp(value, "8.", 2) == 0 ? since_9 : NULL;
            i++;
        } else if (strcmp(argv[i], "--without") == 0) {
            options.without[1] = value;
            i++;
        } else if (strcmp(argv[i], "--no") == 0 && options.nno < 8) {
            options.no[options.nno++] = value;
            i++;
        } else if (strcmp(argv[i], "--split") == 0) {
            options.split = true;
        } else if (strcmp(argv[i], "--hcomm") == 0) {
            options.hcomm = true;
        } else if (options.from == NULL) {
            options.from = argv[i];
        } else {
            options.to = argv[i];
        }
    }
    if (options.to == NULL) {
        (void)fprintf(stderr, "usage: fake_cann_home FROM TO [--cann 8.1] [--without NAME,...] [--split] "
                              "[--hcomm] [--no LIBRARY]...\n");
        return 2;
    }
    char folder[4096];
    (void)snprintf(folder, sizeof folder, "%s/lib64", options.to);
    if ((mkdir(options.to, 0777) != 0 && errno != EEXIST) || (mkdir(folder, 0777) != 0 && errno != EEXIST)) {
        die("can't make", folder);
    }
    copy(&options, "libascendcl", "libascendcl", NULL);
    copy(&options, "libnnopbase", "libnnopbase", NULL);
    copy(&options, "libhccl", "libhccl", options.hcomm ? management : NULL);
    if (options.hcomm) {
        copy(&options, "libhccl", "libhcomm", transfers);
    }
    copy(&options, "libopapi", options.split ? "libopapi_math" : "libopapi", NULL);
    if (options.split) {
        copy(&options, "libopapi", "libopapi_nn", NULL);
        copy(&options, "libopapi", "libopapi_transformer", NULL);
    }
    return 0;
}
