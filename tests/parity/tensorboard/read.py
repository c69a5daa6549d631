# SPDX-License-Identifier: Apache-2.0
"""Reads the event files that `test_parity_tensorboard FOLDER` wrote with TensorBoard's own reader (pip install tensorboard) and holds
them to what the test put in: python read.py FOLDER. Where it agrees, the hashes that the test printed are recorded in tensorboard.c."""
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1])
events.Reload()
assert sorted(events.Tags()["scalars"]) == ["loss_metrics/global_avg_loss", "lr/AdamW", "mfu(%)"], events.Tags()
loss = [(e.step, e.value, e.wall_time) for e in events.Scalars("loss_metrics/global_avg_loss")]
want = [(s, 8 - s / 4 + (100 if s > 5 else 0), 1796036636.5 + (1000 if s > 5 else 0) + s) for s in range(1, 11)]
assert loss == want, loss
assert [e.step for e in events.Scalars("mfu(%)")] == [2, 4, 6, 8, 10]
assert all(abs(e.value - 1e-3 / e.step) < 1e-10 for e in events.Scalars("lr/AdamW"))
print("one series, steps 1 to 10")
