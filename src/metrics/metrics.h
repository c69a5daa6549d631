/* SPDX-License-Identifier: Apache-2.0 */
/* The map of the room `metrics`: what a run leaves behind to be looked at. Nothing here can stop a run: what cannot be written is
 * warned of once and then left out. docs/metrics.md describes the files.
 *
 *   writer.h     a thread that writes files behind the back of training     series.h    rates; a step's scalars; metrics.csv
 *   tfevents.h   TensorBoard event files                                    trace.h     spans and events as JSON lines
 *   profile.h    which steps are profiled; their ops as a Chrome trace      progress.h  the line below the log on a terminal
 */
#ifndef CTI_METRICS_METRICS_H
#define CTI_METRICS_METRICS_H

#include "metrics/profile.h"
#include "metrics/progress.h"
#include "metrics/series.h"
#include "metrics/tfevents.h"
#include "metrics/trace.h"
#include "metrics/writer.h"

#endif
