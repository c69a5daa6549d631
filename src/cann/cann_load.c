/* SPDX-License-Identifier: Apache-2.0 */
/* Finds CANN's libraries and the functions in them. */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cann/cann.h"

#if defined(__aarch64__)
#define ARCH "aarch64-linux"
#else
#define ARCH "x86_64-linux"
#endif

enum { MAX_LIBRARIES = 32, MAX_ROOTS = 4, LIST_BYTES = 4096 };

typedef struct library {
    char name[80]; /* as it was asked for */
    void *handle;
} library;

/* All that was loaded; written under the lock once, then only read. */
static struct {
    pthread_mutex_t lock;
    bool is_done, is_hccl_done;
    ct_err err, hccl_err; /* of the load; empty where it worked */
    cti_cann cann;
    cti_hccl hccl;
    library libraries[MAX_LIBRARIES];
    int n;
    char root[512];            /* where the runtime was found */
    char opened[LIST_BYTES];   /* paths, one a line */
    char refused[LIST_BYTES];  /* why others were not taken, "; " between */
    char sought[LIST_BYTES];   /* names asked for, ", " between */
} all = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void add_text(char *list, const char *separator, const char *text)
{
    const size_t len = strlen(list);
    (void)snprintf(list + len, LIST_BYTES - len, "%s%s", len > 0 ? separator : "", text); /* cut where it is too long */
}

/* The places of this room that read the environment. */
static const char *variable(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): nothing of ours writes the environment */
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static int find_roots(const char *roots[MAX_ROOTS])
{
    const char *const all_roots[] = {variable("ASCEND_HOME_PATH"), variable("ASCEND_TOOLKIT_HOME"), "/usr/local/Ascend/cann",
                                     "/usr/local/Ascend/ascend-toolkit/latest"};
    int n = 0;
    for (size_t i = 0; i < sizeof all_roots / sizeof all_roots[0]; i++) {
        if (all_roots[i] != NULL) {
            roots[n++] = all_roots[i];
        }
    }
    return n;
}

static bool is_for_linking(const char *path)
{
    return strstr(path, "/devlib/") != NULL || strstr(path, "/stub/") != NULL;
}

static bool is_open(const void *handle)
{
    for (int i = 0; i < all.n; i++) {
        if (all.libraries[i].handle == handle) {
            return true;
        }
    }
    return false;
}

/* Opens a file or, where it has no slash, a name. false: it is not there, or is not one to use, which is noted. */
static bool open_library(const char *path)
{
    char text[1024];
    if (all.n == MAX_LIBRARIES) {
        return false;
    }
    if (strchr(path, '/') != NULL) {
        char *real = realpath(path, NULL);
        const bool is_there = real != NULL, is_stub = is_there && is_for_linking(real);
        if (is_stub) {
            (void)snprintf(text, sizeof text, "'%.500s' is a library for linking only", real);
            add_text(all.refused, "; ", text);
        }
        free(real);
        if (!is_there || is_stub) {
            return false;
        }
    }
    void *handle = dlopen(path, RTLD_LAZY);
    if (handle == NULL) {
        const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
        if (strchr(path, '/') != NULL) { /* it is there, but cannot be loaded */
            add_text(all.refused, "; ", why != NULL ? why : path);
        }
        return false;
    }
    struct link_map *map = NULL;
    const char *file = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_name[0] != '\0' ? map->l_name : path;
    char *real = realpath(file, NULL);
    const bool is_stub = is_for_linking(real != NULL ? real : file);
    if (is_stub) {
        (void)snprintf(text, sizeof text, "'%.500s' is a library for linking only", file);
        add_text(all.refused, "; ", text);
    } else if (!is_open(handle)) {
        library *l = &all.libraries[all.n++];
        const char *slash = strrchr(path, '/');
        (void)snprintf(l->name, sizeof l->name, "%.79s", slash != NULL ? slash + 1 : path);
        l->handle = handle;
        add_text(all.opened, "\n", file);
    }
    free(real);
    return !is_stub; /* a stub stays open: closing it might run what it registered */
}

static const char *const FOLDERS[] = {"lib64", ARCH "/lib64"};

static bool open_below(const char *root, const char *name)
{
    for (size_t f = 0; f < sizeof FOLDERS / sizeof FOLDERS[0]; f++) {
        char path[1024];
        (void)snprintf(path, sizeof path, "%.500s/%s/%s", root, FOLDERS[f], name);
        if (open_library(path)) {
            return true;
        }
    }
    return false;
}

/* Below the root that the runtime came from, else by its name. */
static bool open_beside(const char *name)
{
    add_text(all.sought, ", ", name);
    return (all.root[0] != '\0' && open_below(all.root, name)) || open_library(name);
}

/* All libopapi_*.so of the root: 8.5 and later split the operators. */
static void open_split_operators(void)
{
    add_text(all.sought, ", ", "libopapi_*.so");
    for (size_t f = 0; f < sizeof FOLDERS / sizeof FOLDERS[0] && all.root[0] != '\0'; f++) {
        char pattern[1024];
        glob_t found = {0};
        (void)snprintf(pattern, sizeof pattern, "%s/%s/libopapi_*.so", all.root, FOLDERS[f]);
        if (glob(pattern, 0, NULL, &found) == 0) {
            for (size_t i = 0; i < found.gl_pathc; i++) {
                (void)open_library(found.gl_pathv[i]); /* one that is missing is named by the operator that wants it */
            }
        }
        globfree(&found);
    }
}

static ct_status open_runtime(ct_err *err)
{
    const char *roots[MAX_ROOTS];
    const int n = find_roots(roots);
    static const char *const NAMES[] = {"libascendcl.so", "libacl_rt.so"};
    bool is_found = false;
    for (int r = 0; r < n && !is_found; r++) {
        for (int i = 0; i < 2; i++) {
            is_found = open_below(roots[r], NAMES[i]) || is_found;
        }
        if (is_found) {
            (void)snprintf(all.root, sizeof all.root, "%.500s", roots[r]);
        }
    }
    for (int i = 0; i < 2 && !is_found; i++) {
        is_found = open_library(NAMES[i]);
    }
    if (is_found) {
        add_text(all.sought, ", ", "libascendcl.so, libacl_rt.so");
        return CT_OK;
    }
    char places[2048] = "";
    size_t len = 0;
    for (int r = 0; r < n && len < sizeof places; r++) {
        len += (size_t)snprintf(places + len, sizeof places - len, "%s'%.400s'", r > 0 ? ", " : "", roots[r]);
    }
    return CT_FAIL(err, CT_ERR_NOT_FOUND,
                   "there is no CANN: libascendcl.so and libacl_rt.so are neither below %s nor where the loader looks (LD_LIBRARY_PATH)%s%s; install "
                   "it, or set ASCEND_HOME_PATH, or source its set_env.sh",
                   places, all.refused[0] != '\0' ? "; " : "", all.refused);
}

static void open_operators(void)
{
    static const char *const NAMES[] = {"libopapi.so",          "libaclnn_math.so",   "libaclnn_ops_infer.so",
                                        "libaclnn_ops_train.so", "libaclnn_sparse.so", "libaclnn_fft.so",
                                        "libaclnn_rand.so"};
    const char *custom = variable("ASCEND_CUSTOM_OPP_PATH");
    for (const char *at = custom, *end; at != NULL; at = *end == ':' ? end + 1 : NULL) { /* a list, as PATH is */
        char path[1024];
        end = strchrnul(at, ':');
        (void)snprintf(path, sizeof path, "%.*s/op_api/lib/libcust_opapi.so", (int)(end - at < 900 ? end - at : 900), at);
        (void)open_library(path);
    }
    open_split_operators();
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        (void)open_beside(NAMES[i]); /* 8.x has these, 9.x the split ones */
    }
}

static void *find_symbol(const char *name)
{
    void *found = NULL;
    for (int i = 0; i < all.n && found == NULL; i++) {
        found = dlsym(all.libraries[i].handle, name);
    }
    return found;
}

enum { MUST = 1, MAY = 0 };

typedef struct row {
    const char *name;
    size_t offset;
    int need;
} row;

/* " (CANN 9.1.0; ctitan is written for 8.0 to 9.x)", as far as the libraries tell, whatever else they lack. */
static const char *found_version(char *buf, size_t size)
{
    static const row ROWS[] = {{"aclsysGetVersionStr", offsetof(cti_cann, aclsysGetVersionStr), MAY},
                               {"aclsysGetCANNVersion", offsetof(cti_cann, aclsysGetCANNVersion), MAY},
                               {"aclrtGetVersion", offsetof(cti_cann, aclrtGetVersion), MAY}};
    cti_cann cann = {0};
    char version[128];
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        void *found = find_symbol(ROWS[i].name);
        memcpy((char *)&cann + ROWS[i].offset, &found, sizeof found);
    }
    (void)cti_cann_version(&cann, version, sizeof version);
    (void)snprintf(buf, size, " (%s; ctitan is written for CANN 8.0 to 9.x)", version[0] != '\0' ? version : "of a version that is not told");
    return buf;
}

static ct_status take(const row *rows, size_t n, void *into, const char *what, ct_err *err)
{
    for (size_t i = 0; i < n; i++) {
        void *found = find_symbol(rows[i].name);
        memcpy((char *)into + rows[i].offset, &found, sizeof found); /* ISO C has no cast from object to function */
        if (found == NULL && rows[i].need == MUST) {
            char version[256];
            return CT_FAIL(err, CT_ERR_UNSUPPORTED, "%s%s has no function %s(); looked into %s%s%s", what, found_version(version, sizeof version), rows[i].name,
                           all.sought, all.refused[0] != '\0' ? "; " : "", all.refused);
        }
    }
    return CT_OK;
}

#define CANN_ROW(need, result, name, params) {#name, offsetof(cti_cann, name), need},
#define HCCL_ROW(need, result, name, params) {#name, offsetof(cti_hccl, name), need},
#define OP_ROWS(name, ...)                                                       \
    {"aclnn" #name "GetWorkspaceSize", offsetof(cti_cann, name##_size), MAY},    \
    {"aclnn" #name, offsetof(cti_cann, name), MAY},

static ct_status load_cann(ct_err *err)
{
    static const row RUNTIME[] = {CTI_ACL_LIST(CANN_ROW)};
    static const row META[] = {CTI_ACL_META_LIST(CANN_ROW)};
    static const row OPERATORS[] = {CTI_ACLNN_LIST(OP_ROWS)};
    CT_TRY(open_runtime(err));
    CT_TRY(take(RUNTIME, sizeof RUNTIME / sizeof RUNTIME[0], &all.cann, "CANN's runtime", err));
    (void)open_beside("libnnopbase.so"); /* its functions are asked for below */
    open_operators();
    CT_TRY(take(META, sizeof META / sizeof META[0], &all.cann, "CANN's operator interface", err));
    CT_TRY(take(OPERATORS, sizeof OPERATORS / sizeof OPERATORS[0], &all.cann, "", err));
    const aclError e = all.cann.aclInit(NULL);
    if (e != 0 && e != ACL_ERROR_REPEAT_INITIALIZE) {
        return cti_acl_fail(&all.cann, e, err, "aclInit");
    }
    return CT_OK;
}

static ct_status load_hccl(ct_err *err)
{
    static const row ROWS[] = {CTI_HCCL_LIST(HCCL_ROW)};
    const bool has_hccl = open_beside("libhccl.so"), has_hcomm = open_beside("libhcomm.so");
    if (!has_hccl && !has_hcomm) {
        return CT_FAIL(err, CT_ERR_NOT_FOUND, "there is no HCCL: neither libhccl.so nor libhcomm.so is below '%s' or where the loader looks%s%s", all.root,
                       all.refused[0] != '\0' ? "; " : "", all.refused);
    }
    return take(ROWS, sizeof ROWS / sizeof ROWS[0], &all.hccl, "HCCL", err);
}

static ct_status again(const ct_err *first, ct_err *err)
{
    return first->status != CT_OK ? CT_FAIL(err, first->status, "%s", first->message) : CT_OK;
}

ct_status cti_cann_load(const cti_cann **out_cann, ct_err *err)
{
    (void)pthread_mutex_lock(&all.lock); /* cannot fail for a lock of this kind */
    if (!all.is_done) {
        all.is_done = true;
        if (load_cann(&all.err) == CT_OK) {
            all.err = (ct_err){0};
        }
    }
    (void)pthread_mutex_unlock(&all.lock);
    CT_TRY(again(&all.err, err));
    *out_cann = &all.cann;
    return CT_OK;
}

ct_status cti_hccl_load(const cti_hccl **out_hccl, ct_err *err)
{
    const cti_cann *cann;
    CT_TRY(cti_cann_load(&cann, err));
    (void)pthread_mutex_lock(&all.lock);
    if (!all.is_hccl_done) {
        all.is_hccl_done = true;
        if (load_hccl(&all.hccl_err) == CT_OK) {
            all.hccl_err = (ct_err){0};
        }
    }
    (void)pthread_mutex_unlock(&all.lock);
    CT_TRY(again(&all.hccl_err, err));
    *out_hccl = &all.hccl;
    return CT_OK;
}

const char *cti_cann_libraries(void)
{
    return all.opened;
}

const char *cti_cann_root(void)
{
    return all.root;
}

const char *cti_cann_version(const cti_cann *cann, char *buf, size_t size)
{
    enum { CANN_PACKAGE = 0, VERSION_BYTES = 512 }; /* aclCANNPackageVersion: version[128] first */
    char text[VERSION_BYTES] = "", package[] = "runtime";
    int32_t v[3];
    buf[0] = '\0';
    if (cann->aclsysGetVersionStr != NULL && cann->aclsysGetVersionStr(package, text) == 0 && text[0] != '\0') {
        (void)snprintf(buf, size, "CANN %.100s", text);
    } else if (cann->aclsysGetCANNVersion != NULL && cann->aclsysGetCANNVersion(CANN_PACKAGE, text) == 0 && text[0] != '\0') {
        (void)snprintf(buf, size, "CANN %.100s", text);
    } else if (cann->aclrtGetVersion != NULL && cann->aclrtGetVersion(&v[0], &v[1], &v[2]) == 0) {
        (void)snprintf(buf, size, "ACL %d.%d.%d", (int)v[0], (int)v[1], (int)v[2]);
    }
    return buf;
}

int cti_cann_count_missing(const cti_cann *cann, int *out_n, char *buf, size_t size)
{
#define HAS_ROW(name, ...) {"aclnn" #name, cann->name##_size != NULL && cann->name != NULL},
    const struct {
        const char *name;
        bool is_there;
    } rows[] = {CTI_ACLNN_LIST(HAS_ROW)};
#undef HAS_ROW
    int n_missing = 0;
    size_t len = 0;
    buf[0] = '\0';
    *out_n = (int)(sizeof rows / sizeof rows[0]);
    for (int i = 0; i < *out_n; i++) {
        if (!rows[i].is_there) {
            len += len < size ? (size_t)snprintf(buf + len, size - len, "%s%s", n_missing > 0 ? ", " : "", rows[i].name) : 0;
            n_missing++;
        }
    }
    return n_missing;
}

bool cti_cann_is_known_version(const char *version)
{
    enum { FIRST_MAJOR = 8, LAST_MAJOR = 9 };
    const char *digits = version + strcspn(version, "0123456789");
    const size_t n = strspn(digits, "0123456789");
    return cti_starts_with(version, "CANN ") && n == 1 && digits[0] >= '0' + FIRST_MAJOR && digits[0] <= '0' + LAST_MAJOR;
}

ct_status cti_cann_missing(const char *op, const char *for_what, ct_err *err)
{
    char version[256];
    return CT_FAIL(err, CT_ERR_UNSUPPORTED, "the installed CANN%s has no operator for '%s': aclnn%s() or aclnn%sGetWorkspaceSize() is in none of %s%s%s",
                   found_version(version, sizeof version), for_what, op, op, all.sought, all.refused[0] != '\0' ? "; " : "", all.refused);
}

void cti_hccl_config_init(HcclCommConfig *config)
{
    *config = (HcclCommConfig){.size = sizeof *config,
                               .magic = HCCL_COMM_CONFIG_MAGIC,
                               .version = 5,
                               .hcclBufferSize = HCCL_COMM_CONFIG_NOT_SET,
                               .hcclDeterministic = HCCL_COMM_CONFIG_NOT_SET,
                               .hcclRdmaTrafficClass = HCCL_COMM_CONFIG_NOT_SET,
                               .hcclRdmaServiceLevel = HCCL_COMM_CONFIG_NOT_SET};
}
