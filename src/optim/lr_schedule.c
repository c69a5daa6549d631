/* SPDX-License-Identifier: Apache-2.0 */
/* Learning-rate schedules. */
#include <math.h>

#include "base/num.h"
#include "optim/optim.h"

ct_lr_schedule ct_lr_schedule_make(int64_t total_steps, int64_t warmup_steps, double decay_ratio, ct_lr_decay decay,
                                   double min_factor)
{
    ct_lr_schedule s = {.warmup_steps = warmup_steps, .decay = decay, .min_factor = min_factor};
    if (s.warmup_steps > total_steps) {
        s.warmup_steps = total_steps;
        s.is_warmup_cut = true;
    }
    s.decay_steps = decay_ratio < 0.0 ? total_steps - s.warmup_steps
                                      : (int64_t)nearbyint((double)total_steps * decay_ratio); /* half to even */
    if (s.warmup_steps + s.decay_steps > total_steps) {
        s.decay_steps = total_steps - s.warmup_steps;
        s.is_decay_cut = true;
    }
    s.stable_steps = total_steps + 1 - s.warmup_steps - s.decay_steps;
    return s;
}

double ct_lr_factor(const ct_lr_schedule *s, int64_t done)
{
    if (done < s->warmup_steps) {
        return (double)(done + 1) / (double)s->warmup_steps;
    }
    if (done < s->warmup_steps + s->stable_steps || s->decay_steps == 0) {
        return 1.0;
    }
    const double p = fmin(1.0, (double)(done + 1 - s->warmup_steps - s->stable_steps) / (double)s->decay_steps);
    const double a = s->decay == CT_LR_LINEAR ? 1.0 - p
                     : s->decay == CT_LR_SQRT ? 1.0 - sqrt(p)
                                              : 0.5 * (1.0 + cos(3.14159265358979323846 * p));
    return s->min_factor + (1.0 - s->min_factor) * a;
}
