/* rooms: report metrics base */
/* SPDX-License-Identifier: Apache-2.0 */
/* The report over damaged metrics.csv and run.json: a page or one error, and never a page that a file's text could write into. */
#include "fuzz/fuzz.h"

#include "report/report.h"

static const char table[] = "step,time,loss_metrics/global_avg_loss,grad_norm,throughput(tps),mfu(%),memory/max_reserved(GiB),n_tokens_seen,lr/AdamW\n"
                            "1,1796036636.945,8.230227188102972,1.6754,1191.05,22.39,0.1087,128,0.0004\n"
                            "2,1796036636.993,8.113994421607998,1.6774,2684.94,,0.1087,256,0.0008\n"
                            "5,1796036637.990,nan,inf,2684.94,50.4,0.1087,640,8e-05\n";
static const char facts[] = "{\"version\": \"0.1.0\", \"model\": \"llama3\", \"flavor\": \"debugmodel\", \"machine\": {\"device\": \"CPU\", \"cores\": 2, "
                            "\"peak_flops\": 1.8e11}, \"parameters\": 6163712, \"settings\": {\"training.steps\": {\"value\": 8, \"source\": \"flag\"}, "
                            "\"checkpoint.folder\": {\"value\": \"checkpoint\", \"source\": \"default\"}}}";
static const char *const words[] = {"<script>", "&", "\"", "step,time,", "\n", ",", "nan", "-inf", "1e308", "-1e308", "1e-320", "{", "null", "settings"};

int main(void)
{
    const ct_alloc *alloc = ct_alloc_system();
    const cti_report_options options = {.tolerance = 1e-4, .version = "0"};
    cti_str csv = {.alloc = alloc}, json = {.alloc = alloc};
    int64_t n_pages = 0;
    for (fuzz_case c = fuzz_begin("report", 3000); fuzz_next(&c);) {
        cti_run_record run[2] = {{.alloc = alloc, .folder = ct_alloc_strdup(alloc, "a", NULL)},
                                 {.alloc = alloc, .folder = ct_alloc_strdup(alloc, "b/a", NULL)}};
        ct_err err = {0};
        fuzz_mutate(&c, &csv, table, sizeof table - 1, words, N_OF(words));
        fuzz_mutate(&c, &json, facts, sizeof facts - 1, words, N_OF(words));
        cti_str_add_char(&csv, '\0');
        const ct_status st = cti_table_parse(alloc, csv.data, csv.len - 1, "m.csv", &run[0].table, &err);
        assert_int_equal(cti_table_parse(alloc, table, sizeof table - 1, "n.csv", &run[1].table, &err), CT_OK);
        if (st != CT_OK) {
            if (st != CT_ERR_FORMAT || err.message[0] == '\0') {
                fail_msg("seed %llu: %s", (unsigned long long)c.seed, err.message);
            }
        } else {
            cti_str html = {.alloc = alloc}, text = {.alloc = alloc};
            for (int64_t i = 1; i < run[0].table.n_rows; i++) {
                assert_true(run[0].table.steps[i] > run[0].table.steps[i - 1]);
            }
            run[0].facts = json_loadb(json.data, json.len, 0, NULL);
            assert_int_equal(cti_report_page(run, 2, &options, &html, &err), CT_OK);
            assert_int_equal(cti_report_text(run, 2, &options, &text, &err), CT_OK);
            const char *first = strstr(cti_str_text(&html), "<script>");
            if (first == NULL || strstr(first + 1, "<script>") != NULL || strstr(html.data, "=\"nan") != NULL) {
                fail_msg("seed %llu: not our page any more", (unsigned long long)c.seed);
            }
            n_pages++;
            cti_str_deinit(&html);
            cti_str_deinit(&text);
        }
        cti_run_record_deinit(&run[0]);
        cti_run_record_deinit(&run[1]);
    }
    printf("%lld pages\n", (long long)n_pages);
    cti_str_deinit(&csv);
    cti_str_deinit(&json);
    return 0;
}
