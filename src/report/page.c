/* SPDX-License-Identifier: Apache-2.0 */
/* The HTML page: one file that needs nothing else. All text from files goes through cti_html_add. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/num.h"
#include "report/report_internal.h"

enum { N_COLORS = 8 };

static const char style[] =
    ":root{color-scheme:light dark;--bg:#fff;--fg:#1c2024;--dim:#666e78;--line:#e3e6ea;--card:#f7f8fa;--mark:#fff3c9;"
    "--c0:#1668b8;--c1:#c8511b;--c2:#0a8a5f;--c3:#a6478f;--c4:#8a6b00;--c5:#3b8fb0;--c6:#b02a4c;--c7:#5c5fc4}"
    "@media(prefers-color-scheme:dark){:root{--bg:#14171a;--fg:#e4e7eb;--dim:#949ca6;--line:#2b3036;--card:#1b1f23;--mark:#4a3d10;"
    "--c0:#5aa9f0;--c1:#f0905a;--c2:#3fcf9b;--c3:#de86c8;--c4:#d9b440;--c5:#7cc7e3;--c6:#f0708f;--c7:#9d9ff5}}"
    "*{box-sizing:border-box}body{margin:0 auto;max-width:1240px;padding:20px clamp(12px,3vw,32px) 48px;background:var(--bg);color:var(--fg);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',sans-serif}"
    "h1{font-size:22px;margin:0 0 2px}h2{font-size:17px;margin:32px 0 10px}h3{font-size:14px;margin:0 0 2px;font-weight:600}"
    "h3 small{font-weight:400;color:var(--dim);font-size:13px}.dim{color:var(--dim)}"
    ".legend{display:flex;flex-wrap:wrap;gap:4px 18px;margin:14px 0;padding:0;list-style:none}.legend svg{width:26px;height:10px;margin-right:7px}"
    ".grid-of{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,430px),1fr));gap:14px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:12px 12px 4px;position:relative;min-width:0}"
    ".card svg{display:block;width:100%;height:auto}.card text{fill:var(--dim);font-size:12.5px}.card .name{font-size:12.5px}"
    ".grid{stroke:var(--line)}.axis,.tick{stroke:var(--dim)}"
    "polyline{fill:none;stroke-width:1.7;vector-effect:non-scaling-stroke;stroke-linejoin:round;stroke-linecap:round}"
    ".dashed{stroke-dasharray:5 4}"
    ".k0{stroke:var(--c0)}.k1{stroke:var(--c1)}.k2{stroke:var(--c2)}.k3{stroke:var(--c3)}.k4{stroke:var(--c4)}.k5{stroke:var(--c5)}"
    ".k6{stroke:var(--c6)}.k7{stroke:var(--c7)}.cursor{stroke:var(--dim);stroke-dasharray:2 3}"
    ".tip{position:absolute;display:none;pointer-events:none;background:var(--bg);border:1px solid var(--line);border-radius:6px;"
    "padding:3px 8px;font-size:12.5px;box-shadow:0 2px 8px #0003;z-index:2;white-space:nowrap;font-variant-numeric:tabular-nums}"
    ".wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums}"
    "th,td{text-align:left;padding:4px 18px 4px 0;border-bottom:1px solid var(--line);vertical-align:top;white-space:nowrap}th{font-weight:600;color:var(--dim)}"
    "td.n,th.n{text-align:right}td.differs{background:var(--mark)}code{font:13px/1.45 ui-monospace,'SF Mono',Menlo,Consolas,monospace}"
    "td code{white-space:normal;overflow-wrap:anywhere}details{margin-top:10px}summary{cursor:pointer;color:var(--dim)}"
    ".switch{display:inline-flex;margin:2px 0 12px;border:1px solid var(--line);border-radius:7px;overflow:hidden}"
    ".switch label{padding:3px 14px;cursor:pointer;color:var(--dim)}#by-step,#by-tokens{position:absolute;opacity:0}"
    "#by-step:checked~.switch [for=by-step],#by-tokens:checked~.switch [for=by-tokens]{background:var(--line);color:var(--fg)}"
    "#by-step:focus-visible~.switch [for=by-step],#by-tokens:focus-visible~.switch [for=by-tokens]{outline:2px solid var(--c0)}"
    "#by-step:checked~.grid-of .tokens,#by-tokens:checked~.grid-of .step{display:none}"
    "@media print{body{max-width:none}.switch{display:none}}";

/* Shows the values of all curves at the pointer. */
static const char script[] =
    "document.querySelectorAll('.card').forEach(card=>{const tip=card.querySelector('.tip');"
    "const hide=()=>{tip.style.display='none';card.querySelectorAll('.cursor').forEach(l=>l.remove())};"
    "card.addEventListener('pointerleave',hide);card.addEventListener('pointermove',e=>{hide();"
    "const svg=[...card.querySelectorAll('svg')].find(s=>s.clientWidth>0),g=svg&&svg.querySelector('.curves');if(!g)return;"
    "const m=g.getScreenCTM();if(!m)return;const at=new DOMPoint(e.clientX,e.clientY).matrixTransform(m.inverse()).x;"
    "let best=null;const rows=[];g.querySelectorAll('polyline').forEach(p=>{let b=null;for(const q of p.points)"
    "if(!b||Math.abs(q.x-at)<Math.abs(b.x-at))b=q;if(b){rows.push([p,b]);if(!best||Math.abs(b.x-at)<Math.abs(best.x-at))best=b}});"
    "if(!best)return;tip.textContent='';const line=t=>{const d=document.createElement('div');d.textContent=t;tip.append(d);return d};"
    "line(svg.dataset.x+' '+(+best.x.toPrecision(7)).toLocaleString('en'));const seen=new Map();"
    "rows.forEach(([p,b])=>{const k=p.className.baseVal,o=seen.get(k);if(!o||Math.abs(b.x-best.x)<Math.abs(o[1].x-best.x))seen.set(k,[p,b])});"
    "seen.forEach(([p,b])=>{if(Math.abs((b.x-best.x)*m.a)<8)line(+b.y.toPrecision(6)).style.color=getComputedStyle(p).stroke});"
    "const s=new DOMPoint(best.x,0).matrixTransform(m),r=card.getBoundingClientRect(),c=svg.getScreenCTM().inverse(),"
    "u=new DOMPoint(s.x,0).matrixTransform(c).x,l=document.createElementNS('http://www.w3.org/2000/svg','line');"
    "l.setAttribute('class','cursor');l.setAttribute('x1',u);l.setAttribute('x2',u);l.setAttribute('y1',12);l.setAttribute('y2',256);svg.append(l);"
    "tip.style.display='block';const w=tip.offsetWidth,x=s.x-r.left;tip.style.left=(x+w+20>r.width?x-w-12:x+12)+'px';"
    "tip.style.top=(e.clientY-r.top+14)+'px'})});";

void cti_html_add(cti_str *out, const char *text)
{
    const unsigned char *p = (const unsigned char *)text, *end = p + strlen(text);
    while (p < end) {
        const int n = cti_utf8_len(p, end);
        const char *escaped = n == 0 || (*p < 0x20 && *p != '\n' && *p != '\t') || *p == 0x7f ? "\xef\xbf\xbd" : *p == '&' ? "&amp;" : *p == '<' ? "&lt;"
                              : *p == '>' ? "&gt;" : *p == '"' ? "&quot;" : *p == '\'' ? "&#39;" : NULL;
        if (escaped != NULL) {
            cti_str_add(out, escaped);
        } else {
            cti_str_add_n(out, p, (size_t)n);
        }
        p += n > 0 ? n : 1;
    }
}

typedef struct page {
    const cti_run_record *runs;
    size_t n;
    const char *labels[CTI_REPORT_MAX_RUNS];
    const cti_report_options *options;
    double *room; /* columns of the chart that is being drawn */
    cti_str *out;
} page;

/* ---- head ------------------------------------------------------------------------------------------------------ */

static void add_legend(const page *p)
{
    cti_str_add(p->out, "<ul class=\"legend\">");
    for (size_t i = 0; i < p->n; i++) {
        cti_str_printf(p->out, "<li><svg viewBox=\"0 0 26 10\"><polyline class=\"k%d%s\" points=\"1,5 25,5\"/></svg>", (int)(i % N_COLORS),
                       i >= N_COLORS ? " dashed" : "");
        cti_html_add(p->out, p->labels[i]);
        cti_str_add(p->out, "</li>");
    }
    cti_str_add(p->out, "</ul>\n");
}

/* digits behind the point; -1: six in all. */
static void add_number_cell(const page *p, double value, int digits, const char *unit)
{
    char text[32];
    if (isfinite(value) && digits == 0 && fabs(value) < 9e18) {
        cti_str_printf(p->out, "<td class=\"n\">%s%s</td>", cti_format_thousands((int64_t)nearbyint(value), text), unit);
    } else if (isfinite(value) && digits > 0 && fabs(value) < 1e9) {
        cti_str_printf(p->out, "<td class=\"n\">%.*f%s</td>", digits, value, unit);
    } else {
        cti_str_printf(p->out, "<td class=\"n\">%s%s</td>", cti_short_number(value, text), isfinite(value) ? unit : "");
    }
}

static void add_time_cell(const page *p, double hours)
{
    if (!(hours >= 0.0 && hours < 1e6)) {
        cti_str_add(p->out, "<td class=\"n\">–</td>");
        return;
    }
    const int64_t s = (int64_t)nearbyint(hours * 3600.0);
    cti_str_printf(p->out, "<td class=\"n\">%" PRId64 ":%02" PRId64 ":%02" PRId64 "</td>", s / 3600, s / 60 % 60, s % 60);
}

static void add_text_cell(const page *p, const json_t *value)
{
    cti_str_add(p->out, "<td>");
    if (json_is_string(value)) {
        cti_html_add(p->out, json_string_value(value));
    } else if (json_is_number(value)) {
        char text[32];
        cti_str_add(p->out, json_is_integer(value) ? cti_format_thousands((int64_t)json_integer_value(value), text)
                                                   : cti_short_number(json_real_value(value), text));
    } else {
        cti_str_add(p->out, "–");
    }
    cti_str_add(p->out, "</td>");
}

static void add_checkpoints(const page *p, const cti_run_record *run)
{
    enum { SHOWN = 8 };
    cti_str_add(p->out, "<td>");
    const size_t first = run->n_checkpoints > SHOWN ? run->n_checkpoints - SHOWN : 0;
    cti_str_add(p->out, run->n_checkpoints == 0 ? "none" : first > 0 ? "… " : "");
    for (size_t i = first; i < run->n_checkpoints; i++) {
        cti_str_printf(p->out, "%s%" PRId64, i > first ? ", " : "", run->checkpoints[i]);
    }
    cti_str_add(p->out, "</td>");
}

static ct_status add_results(const page *p, ct_err *err)
{
    cti_str_add(p->out, "<h2>Runs</h2><div class=\"wide\"><table><tr><th>run</th><th class=\"n\">last step</th><th class=\"n\">last loss</th>"
                        "<th class=\"n\">least loss</th><th class=\"n\">tokens</th><th class=\"n\">tokens/s, median</th>"
                        "<th class=\"n\">MFU, median</th><th class=\"n\">peak memory</th><th class=\"n\">time</th><th>checkpoints</th></tr>\n");
    for (size_t i = 0; i < p->n; i++) {
        cti_run_sums s;
        char text[32];
        CT_TRY(cti_run_sum(&p->runs[i], &s, err));
        cti_str_add(p->out, "<tr><td>");
        cti_html_add(p->out, p->labels[i]);
        cti_str_printf(p->out, "</td><td class=\"n\">%" PRId64 "</td>", s.last_step);
        add_number_cell(p, s.last_loss, -1, "");
        cti_str_printf(p->out, "<td class=\"n\">%s <span class=\"dim\">at %" PRId64 "</span></td>", cti_short_number(s.least_loss, text),
                       s.least_loss_step);
        add_number_cell(p, s.tokens, 0, "");
        add_number_cell(p, s.median_tps, 0, "");
        add_number_cell(p, s.median_mfu, 1, " %");
        add_number_cell(p, s.peak_gib, 2, " GiB");
        add_time_cell(p, s.hours);
        add_checkpoints(p, &p->runs[i]);
        cti_str_add(p->out, "</tr>\n");
    }
    cti_str_add(p->out, "</table></div>\n");
    return CT_OK;
}

static void add_machines(const page *p)
{
    static const char *const rows[][2] = {
        {"model", "model"}, {"flavor", "flavor"}, {"parameters", "parameters"}, {"FLOPs per token", "flops_per_token"},
        {"computes in", "compute_dtype"}, {"tokens per step", "tokens_per_step"}, {"ranks", "world_size"}, {"device", "machine/device"},
        {"cores", "machine/cores"}, {"memory, bytes", "machine/memory_bytes"}, {"peak FLOP/s", "machine/peak_flops"}, {"host", "machine/host"},
        {"planned memory, bytes", "planned_bytes"}, {"seed", "seed"}, {"started", "started"}, {"resumed after step", "resumed_from_step"},
        {"version", "version"}};
    cti_str_add(p->out, "<h2>Model and machine</h2><div class=\"wide\"><table>");
    if (p->n > 1) {
        cti_str_add(p->out, "<tr><th></th>");
        for (size_t i = 0; i < p->n; i++) {
            cti_str_add(p->out, "<th>");
            cti_html_add(p->out, p->labels[i]);
            cti_str_add(p->out, "</th>");
        }
        cti_str_add(p->out, "</tr>");
    }
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        cti_str_printf(p->out, "<tr><th>%s</th>", rows[r][0]);
        for (size_t i = 0; i < p->n; i++) {
            add_text_cell(p, cti_run_fact(&p->runs[i], rows[r][1]));
        }
        cti_str_add(p->out, "</tr>\n");
    }
    cti_str_add(p->out, "</table></div>\n");
}

/* ---- comparison ------------------------------------------------------------------------------------------------ */

static void add_parting(const page *p, const char *what, const cti_parting *c)
{
    char a[32], b[32];
    cti_str_printf(p->out, "<td>%s</td><td class=\"n\">%" PRId64 "</td>", what, c->n_common);
    if (c->first_different < 0) {
        cti_str_add(p->out, c->n_common > 0 ? "<td>never: the same bits</td><td>never</td><td>0</td>" : "<td>–</td><td>–</td><td>–</td>");
        return;
    }
    cti_str_printf(p->out, "<td>step %" PRId64 " <span class=\"dim\">%s, %s</span></td>", c->first_different,
                   cti_short_number(c->a_different, a), cti_short_number(c->b_different, b));
    if (c->first_beyond < 0) {
        cti_str_add(p->out, "<td>never</td>");
    } else {
        cti_str_printf(p->out, "<td>step %" PRId64 " <span class=\"dim\">%s, %s</span></td>", c->first_beyond, cti_short_number(c->a_beyond, a),
                       cti_short_number(c->b_beyond, b));
    }
    cti_str_printf(p->out, "<td>%.3g <span class=\"dim\">at step %" PRId64 "</span></td>", c->largest, c->largest_at);
}

static void add_comparison(const page *p)
{
    static const char *const columns[][2] = {{"loss", CTI_COLUMN_LOSS}, {"gradient norm", CTI_COLUMN_NORM}};
    if (p->n < 2) {
        return;
    }
    cti_str_add(p->out, "<h2>Where runs part</h2><p class=\"dim\">Beside ");
    cti_html_add(p->out, p->labels[0]);
    cti_str_printf(p->out, ", at the steps that both logged. Differences are relative; the tolerance is %g.</p><div class=\"wide\"><table>"
                           "<tr><th>run</th><th></th><th class=\"n\">steps in common</th><th>first difference</th><th>first beyond the tolerance</th>"
                           "<th>largest difference</th></tr>\n", p->options->tolerance);
    for (size_t i = 1; i < p->n; i++) {
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            const cti_parting parting = cti_runs_compare(&p->runs[0].table, &p->runs[i].table, columns[c][1], p->options->tolerance);
            cti_str_add(p->out, "<tr><td>");
            cti_html_add(p->out, p->labels[i]);
            cti_str_add(p->out, "</td>");
            add_parting(p, columns[c][0], &parting);
            cti_str_add(p->out, "</tr>\n");
        }
    }
    cti_str_add(p->out, "</table></div>\n");
}

/* ---- charts ---------------------------------------------------------------------------------------------------- */

typedef struct chart_row {
    const char *title, *unit;
    const char *column; /* NULL: the first that begins with "lr/" */
    bool begins_at_zero;
    bool is_validation; /* of validation.csv */
} chart_row;
static const chart_row chart_rows[] = {
    {"Loss", "mean over the step's labels", CTI_COLUMN_LOSS, false, false},
    {"Validation loss", "mean over its labels", "validation_metrics/loss", false, true},
    {"Learning rate", "", NULL, true, false},
    {"Gradient norm", "before clipping", CTI_COLUMN_NORM, true, false},
    {"Throughput", "tokens/s per device", CTI_COLUMN_TPS, true, false},
    {"Model FLOPs utilisation", "% of the device's peak", CTI_COLUMN_MFU, true, false},
    {"Memory", "GiB resident, peak so far", CTI_COLUMN_RESERVED, true, false},
};

static const cti_table *table_of(const page *p, size_t run, const chart_row *row)
{
    return row->is_validation ? &p->runs[run].validation : &p->runs[run].table;
}

static int32_t column_of(const cti_table *t, const char *name)
{
    if (name != NULL) {
        return cti_table_column(t, name);
    }
    for (int32_t i = 0; i < t->n_columns; i++) {
        if (cti_starts_with(t->names[i], "lr/")) {
            return i;
        }
    }
    return -1;
}

static bool has_values(const page *p, const chart_row *row)
{
    for (size_t i = 0; i < p->n; i++) {
        const cti_table *t = table_of(p, i, row);
        const int32_t column = column_of(t, row->column);
        for (int64_t r = 0; r < t->n_rows; r++) {
            if (isfinite(cti_table_at(t, r, column))) {
                return true;
            }
        }
    }
    return false;
}

static void add_one_axis(const page *p, const chart_row *row, bool by_tokens)
{
    cti_curve curves[CTI_REPORT_MAX_RUNS];
    cti_chart chart = {row->title, row->unit, by_tokens ? "tokens" : "step", curves, 0, row->begins_at_zero};
    double *at = p->room;
    for (size_t i = 0; i < p->n; i++) {
        const cti_table *t = table_of(p, i, row);
        const int32_t column = column_of(t, row->column), tokens = cti_table_column(t, CTI_COLUMN_TOKENS);
        if (column < 0) {
            continue;
        }
        double *x = at, *y = at + t->n_rows;
        for (int64_t r = 0; r < t->n_rows; r++) {
            x[r] = by_tokens ? cti_table_at(t, r, tokens) : (double)t->steps[r];
            y[r] = cti_table_at(t, r, column);
        }
        curves[chart.n_curves++] = (cti_curve){x, y, t->n_rows, (int)(i % N_COLORS), i >= N_COLORS};
        at += 2 * t->n_rows;
    }
    cti_str_printf(p->out, "<div class=\"%s\">", chart.x_title);
    cti_chart_draw(&chart, p->out);
    cti_str_add(p->out, "</div>");
}

static void add_charts(const page *p)
{
    cti_str_add(p->out, "<h2>Curves</h2>");
    if (p->n > 1) {
        add_legend(p);
    }
    cti_str_add(p->out, "<input type=\"radio\" name=\"axis\" id=\"by-step\" checked><input type=\"radio\" name=\"axis\" id=\"by-tokens\">"
                        "<div class=\"switch\"><label for=\"by-step\">by step</label><label for=\"by-tokens\">by tokens</label></div>"
                        "<div class=\"grid-of\">\n");
    for (size_t c = 0; c < sizeof chart_rows / sizeof chart_rows[0]; c++) {
        if (!has_values(p, &chart_rows[c])) {
            continue;
        }
        cti_str_printf(p->out, "<section class=\"card\"><h3>%s <small>%s</small></h3>", chart_rows[c].title, chart_rows[c].unit);
        add_one_axis(p, &chart_rows[c], false);
        add_one_axis(p, &chart_rows[c], true);
        cti_str_add(p->out, "<div class=\"tip\"></div></section>\n");
    }
    cti_str_add(p->out, "</div>\n");
}

/* ---- settings -------------------------------------------------------------------------------------------------- */

static const json_t *setting(const cti_run_record *run, const char *key, const char *member)
{
    return json_object_get(json_object_get(json_object_get(run->facts, "settings"), key), member);
}

static ct_status add_setting_row(const page *p, const char *key, bool only_chosen, ct_err *err)
{
    bool is_chosen = false, differs = false;
    for (size_t i = 0; i < p->n; i++) {
        const char *source = json_string_value(setting(&p->runs[i], key, "source"));
        is_chosen = is_chosen || (source != NULL && strcmp(source, "default") != 0 && strcmp(source, "registry") != 0);
        const json_t *a = setting(&p->runs[0], key, "value"), *b = setting(&p->runs[i], key, "value");
        differs = differs || (a == NULL) != (b == NULL) || (a != NULL && json_equal(a, b) == 0);
    }
    if (only_chosen != (is_chosen || differs)) {
        return CT_OK;
    }
    cti_str_add(p->out, "<tr><td><code>");
    cti_html_add(p->out, key);
    cti_str_add(p->out, "</code></td>");
    for (size_t i = 0; i < p->n; i++) {
        const json_t *value = setting(&p->runs[i], key, "value");
        char *text = NULL;
        if (value != NULL) {
            CT_TRY(cti_json_dump(p->out->alloc, value, 0, &text, err));
            char *newline = strrchr(text, '\n');
            if (newline != NULL) {
                *newline = '\0';
            }
        }
        cti_str_printf(p->out, "<td%s><code>", differs ? " class=\"differs\"" : "");
        cti_html_add(p->out, text != NULL ? text : "–");
        cti_str_add(p->out, "</code></td>");
        ct_alloc_free(p->out->alloc, text);
    }
    cti_str_add(p->out, "</tr>\n");
    return CT_OK;
}

/* Keys of the first run that has settings, then those that only others have. */
static ct_status add_setting_table(const page *p, bool only_chosen, ct_err *err)
{
    cti_str_add(p->out, "<div class=\"wide\"><table><tr><th>setting</th>");
    for (size_t i = 0; i < p->n; i++) {
        cti_str_add(p->out, "<th>");
        cti_html_add(p->out, p->labels[i]);
        cti_str_add(p->out, "</th>");
    }
    cti_str_add(p->out, "</tr>\n");
    for (size_t i = 0; i < p->n; i++) {
        const char *key;
        json_t *value;
        json_object_foreach(json_object_get(p->runs[i].facts, "settings"), key, value)
        {
            bool was_shown = false;
            for (size_t k = 0; k < i; k++) {
                was_shown = was_shown || json_object_get(json_object_get(p->runs[k].facts, "settings"), key) != NULL;
            }
            if (!was_shown) {
                CT_TRY(add_setting_row(p, key, only_chosen, err));
            }
        }
    }
    cti_str_add(p->out, "</table></div>\n");
    return CT_OK;
}

static ct_status add_body(const page *p, ct_err *err)
{
    cti_str_add(p->out, "<h1>");
    for (size_t i = 0; i < p->n; i++) {
        cti_str_add(p->out, i > 0 ? ", " : "");
        cti_html_add(p->out, p->labels[i]);
    }
    cti_str_printf(p->out, "</h1><div class=\"dim\">training report, ctitan %s</div>\n", p->options->version);
    CT_TRY(add_results(p, err));
    for (size_t i = 0; i < p->n; i++) {
        if (p->runs[i].note != NULL) {
            cti_str_add(p->out, "<p class=\"dim\">");
            cti_html_add(p->out, p->labels[i]);
            cti_str_printf(p->out, ": %s</p>", p->runs[i].note);
        }
    }
    add_comparison(p);
    add_charts(p);
    add_machines(p);
    cti_str_add(p->out, "<h2>Settings</h2><p class=\"dim\">Those that were given");
    cti_str_add(p->out, p->n > 1 ? ", and those that differ between the runs (marked).</p>" : ".</p>");
    CT_TRY(add_setting_table(p, true, err));
    cti_str_add(p->out, "<details><summary>All other settings: defaults, and those of the configuration by name</summary>");
    CT_TRY(add_setting_table(p, false, err));
    cti_str_add(p->out, "</details>\n");
    return CT_OK;
}

ct_status cti_report_page(const cti_run_record *runs, size_t n, const cti_report_options *options, cti_str *out, ct_err *err)
{
    cti_str room = {.alloc = out->alloc};
    page p = {.runs = runs, .n = n, .options = options, .out = out};
    int64_t n_doubles = 1;
    for (size_t i = 0; i < n; i++) {
        n_doubles += 2 * cti_max_i64(runs[i].table.n_rows, runs[i].validation.n_rows);
    }
    CT_TRY(cti_run_labels(runs, n, &room, p.labels, err));
    p.room = CT_NEW_ARRAY(out->alloc, double, n_doubles, err);
    ct_status st = p.room != NULL ? CT_OK : CT_ERR_MEMORY;
    if (st == CT_OK) {
        cti_str_add(out, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
                         "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'\">"
                         "<title>");
        cti_html_add(out, p.labels[0]);
        cti_str_printf(out, "%s – training report</title>\n<style>%s</style></head>\n<body>\n", n > 1 ? " and others" : "", style);
        st = add_body(&p, err);
        cti_str_printf(out, "<script>%s</script>\n</body></html>\n", script);
    }
    ct_alloc_free(out->alloc, p.room);
    cti_str_deinit(&room);
    return st == CT_OK ? cti_str_check(out, err) : st;
}
