/* SPDX-License-Identifier: Apache-2.0 */
/* `ctitan checkpoint show|diff`: what a checkpoint holds, and in what two of them differ, tensor by tensor, whatever layouts wrote them. */
#include "cli/cmd_checkpoint.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "ckpt/ckpt.h"
#include "cli/cli.h"

static const char usage[] =
    "usage: " CTI_PROGRAM " checkpoint show CHECKPOINT\n"
    "       " CTI_PROGRAM " checkpoint diff CHECKPOINT CHECKPOINT [--of CHECKPOINT] [--all]\n\n"
    "CHECKPOINT is a step-<N> folder, or a folder of them: then its newest.\n\n"
    "  show   step, model and tensors\n"
    "  diff   compares tensor by tensor: whether all bits are equal, the largest difference of an element, and the norm of the difference over\n"
    "         that of the first. Exit code 0 where all bits are equal, 1 else.\n"
    "  --of   a third checkpoint, taken for the truth: how far each of the two is from it\n"
    "  --all  tensors that are equal, too\n";

typedef struct difference {
    int64_t n_unequal; /* elements of other bits, or values where dtypes differ */
    double largest, squares, of_squares; /* |a - b|, sum of (a - b)^2, sum of a^2 */
} difference;

enum { CHUNK = 1 << 16 };

static ct_status compare(const ct_ckpt *a, const ct_ckpt *b, const ct_ckpt_piece *t, difference *out, ct_err *err)
{
    static float va[CHUNK], vb[CHUNK];
    *out = (difference){0};
    for (int64_t at = 0; at < t->end; at += CHUNK) {
        const int64_t to = cti_min_i64(at + CHUNK, t->end);
        CT_TRY(ct_ckpt_read(a, t->name, at, to, CT_DTYPE_F32, va, err));
        CT_TRY(ct_ckpt_read(b, t->name, at, to, CT_DTYPE_F32, vb, err));
        for (int64_t i = 0; i < to - at; i++) {
            const double d = (double)va[i] - (double)vb[i];
            out->n_unequal += memcmp(&va[i], &vb[i], sizeof va[i]) != 0;
            out->largest = fabs(d) > out->largest || isnan(d) ? fabs(d) : out->largest;
            out->squares += d * d;
            out->of_squares += (double)va[i] * (double)va[i];
        }
    }
    return CT_OK;
}

static double share(const difference *d)
{
    return d->squares > 0.0 ? sqrt(d->squares / d->of_squares) : d->squares;
}

static ct_status same_shape(const ct_ckpt *b, const ct_ckpt_piece *t, ct_err *err)
{
    const ct_ckpt_piece *other = ct_ckpt_find(b, t->name);
    if (other == NULL) {
        return CT_FAIL(err, CT_ERR_DATA, "'%s' has no tensor '%s'", ct_ckpt_path(b), t->name);
    }
    return other->ndim == t->ndim && memcmp(other->dims, t->dims, sizeof t->dims) == 0
               ? CT_OK
               : CT_FAIL(err, CT_ERR_DATA, "'%s': tensor '%s' has other dims", ct_ckpt_path(b), t->name);
}

static ct_status diff(const ct_ckpt *a, const ct_ckpt *b, const ct_ckpt *truth, bool shows_all, bool *out_equal, ct_err *err)
{
    int64_t n = 0, n_differ = 0;
    for (const ct_ckpt_piece *t; (t = ct_ckpt_tensor_at(a, (size_t)n)) != NULL; n++) {
        difference d, da, db;
        CT_TRY(same_shape(b, t, err));
        CT_TRY(compare(a, b, t, &d, err));
        n_differ += d.n_unequal > 0;
        if (truth != NULL) {
            CT_TRY(same_shape(truth, t, err));
            CT_TRY(compare(truth, a, t, &da, err));
            CT_TRY(compare(truth, b, t, &db, err));
            printf("%s: first %.3e, second %.3e of the truth\n", t->name, share(&da), share(&db));
        } else if (d.n_unequal > 0 || shows_all) {
            printf("%s: %" PRId64 " of %" PRId64 " elements differ, by at most %.3e; norm of the difference %.3e of the first\n", t->name,
                   d.n_unequal, t->end, d.largest, share(&d));
        }
    }
    for (size_t i = 0; ct_ckpt_tensor_at(b, i) != NULL; i++) {
        CT_TRY(same_shape(a, ct_ckpt_tensor_at(b, i), err));
    }
    printf("%" PRId64 " tensors, %" PRId64 " differ\n", n, n_differ);
    *out_equal = n_differ == 0;
    return CT_OK;
}

static void show(const ct_ckpt *c)
{
    const json_t *extra = ct_ckpt_extra(c), *model = json_object_get(extra, "model");
    const char *name = json_string_value(json_object_get(model, "name")), *flavor = json_string_value(json_object_get(model, "flavor"));
    int64_t total = 0;
    printf("%s: step %" PRId64 ", %s %s\n", ct_ckpt_path(c), ct_ckpt_step(c), name != NULL ? name : "?", flavor != NULL ? flavor : "?");
    for (size_t i = 0; ct_ckpt_tensor_at(c, i) != NULL; i++) {
        const ct_ckpt_piece *t = ct_ckpt_tensor_at(c, i);
        printf("  %-60s %-5s [", t->name, ct_dtype_name(t->dtype));
        for (int32_t d = 0; d < t->ndim; d++) {
            printf("%s%" PRId64, d > 0 ? ", " : "", t->dims[d]);
        }
        printf("]\n");
        total += t->end * (int64_t)ct_dtype_size_bytes(t->dtype);
    }
    char text[32];
    printf("  in all %s\n", cti_format_bytes(total, text));
}

static ct_status open_ckpt(const ct_alloc *alloc, const char *path, ct_ckpt **out, ct_err *err)
{
    return ct_ckpt_open(alloc, path, -1, out, NULL, err);
}

static ct_status run(const ct_alloc *alloc, int argc, char **argv, bool *out_equal, ct_err *err)
{
    const char *paths[3] = {NULL, NULL, NULL};
    ct_ckpt *c[3] = {NULL, NULL, NULL};
    bool shows_all = false;
    int n = 0;
    const bool is_diff = argc > 1 && cti_str_eq(argv[1], "diff"), is_show = argc > 1 && cti_str_eq(argv[1], "show");
    for (int i = 2; i < argc; i++) {
        if (is_diff && cti_str_eq(argv[i], "--all")) {
            shows_all = true;
        } else if (is_diff && cti_str_eq(argv[i], "--of") && i + 1 < argc) {
            paths[2] = argv[++i];
        } else if (argv[i][0] == '-' || n == (is_diff ? 2 : 1)) {
            return CT_FAIL(err, CT_ERR_USAGE, "'%s' is not understood; --help tells what is", argv[i]);
        } else {
            paths[n++] = argv[i];
        }
    }
    if ((!is_diff && !is_show) || n != (is_diff ? 2 : 1)) {
        return CT_FAIL(err, CT_ERR_USAGE, "wanted 'show CHECKPOINT' or 'diff CHECKPOINT CHECKPOINT'; --help tells more");
    }
    ct_status st = CT_OK;
    for (int i = 0; i < 3 && st == CT_OK; i++) {
        st = paths[i] != NULL ? open_ckpt(alloc, paths[i], &c[i], err) : CT_OK;
    }
    if (st == CT_OK && is_diff) {
        st = diff(c[0], c[1], c[2], shows_all, out_equal, err);
    } else if (st == CT_OK) {
        show(c[0]);
    }
    for (int i = 0; i < 3; i++) {
        ct_ckpt_close(&c[i]);
    }
    return st;
}

int cti_cmd_checkpoint(int argc, char **argv)
{
    ct_err err = {0};
    bool is_equal = true;
    for (int i = 1; i < argc; i++) {
        if (cti_str_eq(argv[i], "--help") || cti_str_eq(argv[i], "-h")) {
            printf("%s", usage);
            return 0;
        }
    }
    const ct_status st = run(ct_alloc_system(), argc, argv, &is_equal, &err);
    return st != CT_OK ? cti_report("checkpoint", st, &err) : is_equal ? 0 : 1;
}
