/* SPDX-License-Identifier: Apache-2.0 */
/* Checks across settings: one row each. All are evaluated, every failure is a problem that shows the settings' values and where they
 * came from. checks_layout.c: parallelism, batches, lengths; checks_data.c: data, validation, checkpoints; checks.c: the rest, what is
 * not there yet, and what runs the rows. */
#ifndef CTI_CONFIG_CHECKS_H
#define CTI_CONFIG_CHECKS_H

#include "base/num.h"
#include "config/config_internal.h"

typedef struct cti_check_run {
    ct_tree *tree;
    ct_component *root;
    int64_t world; /* 0: not known */
    const cti_training_config *training;
    const cti_parallelism_config *parallelism;
    const cti_checkpoint_config *checkpoint;
    const cti_dataloader_config *dataloader;
    const cti_validator_config *validator;
    const cti_dataloader_config *validator_data;
    const cti_profiler_config *profiler;
    cti_degrees degrees; /* dp_shard may be 0: it cannot be known or does not divide */
    cti_str *detail;     /* a predicate may say more; put after the sentence */
} cti_check_run;

typedef struct cti_check {
    const char *name;
    const char *settings; /* paths that the problem shows, separated by blanks; the first is the one to change */
    bool (*holds)(cti_check_run *r);
    const char *sentence;
} cti_check;
extern const cti_check cti_layout_checks[], cti_data_checks[];
extern const size_t cti_n_layout_checks, cti_n_data_checks;

/* a*b, or INT64_MAX where that does not fit: a degree that no number of ranks equals. */
static inline int64_t cti_degree_product(int64_t a, int64_t b)
{
    int64_t p;
    return cti_mul_i64(a, b, &p) ? p : INT64_MAX;
}
/* Rows of one micro-batch over all ranks, as far as the data-parallel degree is known. */
int64_t cti_rows_at_once(const cti_check_run *r);

#endif
