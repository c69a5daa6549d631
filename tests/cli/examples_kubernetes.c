/* SPDX-License-Identifier: Apache-2.0 */
/* rooms: base */
/* examples/kubernetes.yaml parses as YAML, its parts agree with each other, and the program takes every flag in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <yaml.h>

#include <cmocka.h>

enum { MAX_DOCS = 8 };

typedef struct file {
    yaml_document_t docs[MAX_DOCS];
    int n;
} file;

static void load(file *f)
{
    yaml_parser_t parser;
    FILE *in = fopen(CT_SOURCE_DIR "/examples/kubernetes.yaml", "r");
    assert_non_null(in);
    assert_true(yaml_parser_initialize(&parser));
    yaml_parser_set_input_file(&parser, in);
    for (f->n = 0; f->n < MAX_DOCS; f->n++) {
        if (!yaml_parser_load(&parser, &f->docs[f->n])) {
            fail_msg("line %zu: %s", parser.problem_mark.line + 1, parser.problem);
        }
        if (yaml_document_get_root_node(&f->docs[f->n]) == NULL) {
            yaml_document_delete(&f->docs[f->n]);
            break;
        }
    }
    yaml_parser_delete(&parser);
    (void)fclose(in);
}

static void unload(file *f)
{
    while (f->n > 0) {
        yaml_document_delete(&f->docs[--f->n]);
    }
}

static const char *text(const yaml_node_t *node)
{
    assert_true(node != NULL && node->type == YAML_SCALAR_NODE);
    return (const char *)node->data.scalar.value;
}

/* path: "spec.template.0.name"; numbers are places in a list. Fails where it is not there. */
static yaml_node_t *at(yaml_document_t *doc, const char *path)
{
    yaml_node_t *node = yaml_document_get_root_node(doc);
    while (*path != '\0') {
        const size_t n = strcspn(path, ".");
        yaml_node_t *next = NULL;
        if (node->type == YAML_SEQUENCE_NODE) {
            const long i = strtol(path, NULL, 10);
            assert_true(i < node->data.sequence.items.top - node->data.sequence.items.start);
            next = yaml_document_get_node(doc, node->data.sequence.items.start[i]);
        } else {
            assert_int_equal(node->type, YAML_MAPPING_NODE);
            for (yaml_node_pair_t *p = node->data.mapping.pairs.start; p < node->data.mapping.pairs.top; p++) {
                const char *key = text(yaml_document_get_node(doc, p->key));
                next = strlen(key) == n && memcmp(key, path, n) == 0 ? yaml_document_get_node(doc, p->value) : next;
            }
        }
        if (next == NULL) {
            fail_msg("'%s' is not there", path);
        }
        node = next;
        path += n + (path[n] == '.');
    }
    return node;
}

static void parts_agree(void **state)
{
    (void)state;
    file f;
    load(&f);
    assert_int_equal(f.n, 2);
    yaml_document_t *service = &f.docs[0], *job = &f.docs[1];
    assert_string_equal(text(at(service, "kind")), "Service");
    assert_string_equal(text(at(service, "spec.clusterIP")), "None");
    assert_string_equal(text(at(job, "kind")), "Job");
    assert_string_equal(text(at(job, "apiVersion")), "batch/v1");
    assert_string_equal(text(at(job, "spec.completionMode")), "Indexed");
    const char *name = text(at(job, "metadata.name")), *domain = text(at(service, "metadata.name"));
    assert_string_equal(text(at(service, "spec.selector.job-name")), name);
    assert_string_equal(text(at(job, "spec.template.spec.subdomain")), domain);
    const char *nodes = text(at(job, "spec.parallelism"));
    assert_string_equal(text(at(job, "spec.completions")), nodes);
    assert_string_equal(text(at(job, "spec.template.spec.containers.0.env.0.name")), "NNODES");
    assert_string_equal(text(at(job, "spec.template.spec.containers.0.env.0.value")), nodes);
    /* Pod 0 of an indexed Job is <job>-0 in the service's domain; that is where the launchers meet. */
    char endpoint[256];
    (void)snprintf(endpoint, sizeof endpoint, "--rdzv_endpoint=%s-0.%s:", name, domain);
    const yaml_node_t *args = at(job, "spec.template.spec.containers.0.args");
    bool meets = false;
    long grace = -1;
    for (yaml_node_item_t *i = args->data.sequence.items.start; i < args->data.sequence.items.top; i++) {
        const char *arg = text(yaml_document_get_node(job, *i));
        meets = meets || strncmp(arg, endpoint, strlen(endpoint)) == 0;
        grace = strncmp(arg, "--grace_seconds=", 16) == 0 ? strtol(arg + 16, NULL, 10) : grace;
    }
    assert_true(meets);
    assert_true(grace >= 0 && grace < strtol(text(at(job, "spec.template.spec.terminationGracePeriodSeconds")), NULL, 10));
    unload(&f);
}

/* Runs the program; what it says is shown where its exit code is not 0. */
static void expect_taken(const char *command)
{
    char full[8192];
    (void)snprintf(full, sizeof full, "out=$(%s 2>&1) || { echo \"$out\"; exit 1; }", command);
    const int status = system(full);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void every_flag_is_taken(void **state)
{
    (void)state;
    file f;
    load(&f);
    yaml_document_t *job = &f.docs[1];
    const yaml_node_t *args = at(job, "spec.template.spec.containers.0.args");
    assert_string_equal(text(at(job, "spec.template.spec.containers.0.command.0")), "ctitan");
    /* The launcher's flags as they are, but that one host meets itself; then the settings, without the training. */
    char run[4096] = CT_BINARY_DIR "/bin/ctitan run", settings[4096] = CT_BINARY_DIR "/bin/ctitan config";
    bool is_run = true;
    int n = 0;
    for (yaml_node_item_t *i = args->data.sequence.items.start; i < args->data.sequence.items.top; i++, n++) {
        const char *arg = text(yaml_document_get_node(job, *i));
        if (n == 0) {
            assert_string_equal(arg, "run");
            continue;
        }
        if (is_run && strcmp(arg, "-m") == 0) {
            is_run = false;
            assert_string_equal(text(yaml_document_get_node(job, *++i)), "torchtitan.train");
            continue;
        }
        arg = strncmp(arg, "--nnodes=", 9) == 0 ? "--nnodes=1" : strncmp(arg, "--node_rank=", 12) == 0 ? "--node_rank=0" : arg;
        arg = strncmp(arg, "--rdzv_endpoint=", 16) == 0 ? "--rdzv_endpoint=localhost:0" : arg;
        char *to = is_run ? run : settings;
        const size_t used = strlen(to);
        (void)snprintf(to + used, sizeof run - used, " '%s'", arg);
    }
    assert_false(is_run);
    (void)strncat(run, " --no-python true", sizeof run - strlen(run) - 1);
    expect_taken(run);
    expect_taken(settings);
    unload(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parts_agree), cmocka_unit_test(every_flag_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
