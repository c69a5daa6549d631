/* SPDX-License-Identifier: Apache-2.0 */
/* One chart as SVG. Curves are drawn in the units of their data under one matrix, so that the page's script reads values, not pixels. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/num.h"
#include "report/report_internal.h"

enum { WIDTH = 520, HEIGHT = 300, LEFT = 62, RIGHT = 14, TOP = 12, BOTTOM = 44, MAX_BUCKETS = 400 };

typedef struct range {
    double low, high, tick;
} range;

const char *cti_tick_text(double value, double tick, char buf[32])
{
    static const struct {
        double scale;
        const char *suffix;
    } units[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}};
    const double size = fabs(value);
    if (size < tick * 1e-6) {
        (void)snprintf(buf, 32, "0");
        return buf;
    }
    if (size < 1e-3) {
        (void)snprintf(buf, 32, "%.3g", value);
        return buf;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (size >= 10.0 * units[i].scale || (size >= units[i].scale && tick >= units[i].scale / 10.0)) {
            const int digits = (int)fmax(0.0, fmin(6.0, ceil(-log10(tick / units[i].scale) - 1e-9)));
            (void)snprintf(buf, 32, "%.*f%s", digits, value / units[i].scale, units[i].suffix);
            return buf;
        }
    }
    (void)snprintf(buf, 32, "%.*f", (int)fmax(0.0, fmin(8.0, ceil(-log10(tick) - 1e-9))), value);
    return buf;
}

const char *cti_short_number(double value, char buf[32])
{
    (void)snprintf(buf, 32, isfinite(value) ? "%.6g" : "–", value);
    return buf;
}

/* A tick of 1, 2 or 5 times a power of ten that divides the span into about n parts. */
static double nice_tick(double span, int n)
{
    const double raw = span / n, power = pow(10.0, floor(log10(raw))), head = raw / power;
    return power * (head <= 1.0 ? 1.0 : head <= 2.0 ? 2.0 : head <= 5.0 ? 5.0 : 10.0);
}

static range range_of(const cti_chart *c, bool of_x)
{
    range r = {HUGE_VAL, -HUGE_VAL, 1.0};
    for (size_t k = 0; k < c->n_curves; k++) {
        for (int64_t i = 0; i < c->curves[k].n; i++) {
            const double x = c->curves[k].x[i], y = c->curves[k].y[i];
            if (isfinite(x) && isfinite(y)) {
                r.low = fmin(r.low, of_x ? x : y);
                r.high = fmax(r.high, of_x ? x : y);
            }
        }
    }
    if (!(r.low <= r.high)) {
        return (range){0.0, 1.0, 0.5};
    }
    if (!of_x && c->begins_at_zero) {
        r.low = fmin(r.low, 0.0);
        r.high = fmax(r.high, 0.0);
    }
    if (r.high - r.low <= fmax(1e-290, 1e-12 * fmax(fabs(r.low), fabs(r.high)))) { /* one value: room on both sides */
        const double room = fabs(r.high) > 1e-280 ? 0.1 * fabs(r.high) : 1.0;
        r.low -= of_x || !c->begins_at_zero ? room : 0.0;
        r.high += room;
    }
    if (!(r.high - r.low < 1e300)) { /* what lies further apart than that has no picture */
        return (range){0.0, 1.0, 0.5};
    }
    r.tick = nice_tick(r.high - r.low, of_x ? 5 : 4);
    if (!of_x) {
        r.low = floor(r.low / r.tick + 1e-9) * r.tick;
        r.high = ceil(r.high / r.tick - 1e-9) * r.tick;
    }
    return r;
}

static double at_x(const range *x, double value)
{
    return LEFT + (value - x->low) / (x->high - x->low) * (WIDTH - LEFT - RIGHT);
}

static double at_y(const range *y, double value)
{
    return HEIGHT - BOTTOM - (value - y->low) / (y->high - y->low) * (HEIGHT - TOP - BOTTOM);
}

static void draw_axes(const cti_chart *c, const range *x, const range *y, cti_str *out)
{
    char text[32];
    for (int64_t i = 0; i <= 12; i++) {
        const double v = y->low + (double)i * y->tick;
        if (v > y->high + 1e-6 * y->tick) {
            break;
        }
        cti_str_printf(out, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, at_y(y, v), at_y(y, v));
        cti_str_printf(out, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>", LEFT - 7, at_y(y, v) + 4.0, cti_tick_text(v, y->tick, text));
    }
    const double first = ceil(x->low / x->tick - 1e-9) * x->tick;
    for (int64_t i = 0; i <= 12; i++) {
        const double v = first + (double)i * x->tick;
        if (v > x->high + 1e-6 * x->tick) {
            break;
        }
        cti_str_printf(out, "<line class=\"tick\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>", at_x(x, v), at_x(x, v), HEIGHT - BOTTOM,
                       HEIGHT - BOTTOM + 4);
        cti_str_printf(out, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>", at_x(x, v), HEIGHT - BOTTOM + 18,
                       cti_tick_text(v, x->tick, text));
    }
    cti_str_printf(out, "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>", LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM);
    cti_str_printf(out, "<text class=\"name\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 7);
    cti_html_add(out, c->x_title);
    cti_str_add(out, "</text>");
}

/* Rows of one bucket become their lowest and highest point, in their order: no peak is lost, and no page grows with the run. */
static void draw_curve(const cti_curve *c, cti_str *out)
{
    static const char close[] = "\"/>";
    const int64_t per_bucket = cti_max_i64(1, (c->n + MAX_BUCKETS - 1) / MAX_BUCKETS);
    bool is_open = false;
    for (int64_t begin = 0; begin < c->n; begin += per_bucket) {
        int64_t low = -1, high = -1;
        for (int64_t i = begin; i < cti_min_i64(c->n, begin + per_bucket); i++) {
            if (isfinite(c->x[i]) && isfinite(c->y[i])) {
                low = low < 0 || c->y[i] < c->y[low] ? i : low;
                high = high < 0 || c->y[i] > c->y[high] ? i : high;
            }
        }
        if (low < 0) { /* a gap */
            cti_str_add(out, is_open ? close : "");
            is_open = false;
            continue;
        }
        if (!is_open) {
            cti_str_printf(out, "<polyline class=\"k%d%s\" points=\"", c->color, c->is_dashed ? " dashed" : "");
            is_open = true;
        }
        const int64_t first = cti_min_i64(low, high), second = cti_max_i64(low, high);
        cti_str_printf(out, "%.10g,%.10g ", c->x[first], c->y[first]);
        if (second != first) {
            cti_str_printf(out, "%.10g,%.10g ", c->x[second], c->y[second]);
        } else if (c->n == 1) {
            cti_str_printf(out, "%.10g,%.10g ", c->x[first], c->y[first]); /* a dot */
        }
    }
    cti_str_add(out, is_open ? close : "");
}

void cti_chart_draw(const cti_chart *c, cti_str *out)
{
    const range x = range_of(c, true), y = range_of(c, false);
    const double sx = (WIDTH - LEFT - RIGHT) / (x.high - x.low), sy = (HEIGHT - TOP - BOTTOM) / (y.high - y.low);
    cti_str_printf(out, "<svg viewBox=\"0 0 %d %d\" data-x=\"%s\" role=\"img\" aria-label=\"", WIDTH, HEIGHT, c->x_title);
    cti_html_add(out, c->title);
    cti_str_add(out, " against ");
    cti_html_add(out, c->x_title);
    cti_str_add(out, "\">");
    draw_axes(c, &x, &y, out);
    cti_str_printf(out, "<g class=\"curves\" transform=\"matrix(%.12g 0 0 %.12g %.12g %.12g)\">", sx, -sy, LEFT - x.low * sx,
                   HEIGHT - BOTTOM + y.low * sy);
    for (size_t k = 0; k < c->n_curves; k++) {
        draw_curve(&c->curves[k], out);
    }
    cti_str_add(out, "</g></svg>\n");
}
