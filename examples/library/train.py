#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains with libctitan from Python, by ctypes alone: takes the settings that `ctitan train` takes, prints a line a step.

    python3 train.py --module llama3 --config llama3_debugmodel --training.steps 3
    ctitan run --nproc_per_node=2 --no-python python3 train.py --module llama3 --config llama3_debugmodel --training.steps 3

libctitan.so.0 is found as the loader finds libraries, or by its path in CTITAN_LIBRARY."""
import ctypes
import os
import sys
from ctypes import POINTER, byref, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_void_p

END_OF_DATA = 17  # the place in the list of ctitan/status.h
WARNING = 2
LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class Err(ctypes.Structure):
    _fields_ = [("status", c_int), ("file", c_char_p), ("line", c_int), ("message", c_char * 2048)]


class Sized(ctypes.Structure):
    """Structs of ctitan/run.h begin with their size."""

    def __init__(self, **fields):
        super().__init__(size_bytes=ctypes.sizeof(self), **fields)


class Options(Sized):
    _fields_ = [("size_bytes", c_size_t), ("settings", POINTER(c_char_p)), ("n_settings", c_size_t), ("reads_environment", c_int32),
                ("reserved", c_int32), ("prefix", c_char_p), ("plugin_path", c_char_p), ("on_log", LOG), ("log_ctx", c_void_p)]


class Facts(Sized):
    _fields_ = [("size_bytes", c_size_t)] + [(name, c_int64) for name in (
        "n_parameters", "planned_bytes", "first_step", "last_step", "global_batch", "seq_len", "rank", "world_size")]


class Metrics(Sized):
    _fields_ = [("size_bytes", c_size_t), ("step", c_int64), ("loss", c_double), ("max_loss", c_double), ("grad_norm", c_double),
                ("learning_rate", c_double), ("seconds", c_double), ("tokens_per_second", c_double), ("tokens_seen", c_int64),
                ("peak_memory_bytes", c_int64), ("was_updated", c_int32), ("is_last", c_int32)]


class CtitanError(Exception):
    def __init__(self, status, err):
        super().__init__(err.message.decode())
        self.exit_code = lib.ct_status_exit_code(status)


lib = ctypes.CDLL(os.environ.get("CTITAN_LIBRARY", "libctitan.so.0"))
lib.ct_run_open.argtypes = [POINTER(Options), POINTER(c_void_p), POINTER(Err)]
lib.ct_run_step.argtypes = [c_void_p, POINTER(Metrics), POINTER(Err)]
lib.ct_run_facts_get.argtypes = [c_void_p, POINTER(Facts), POINTER(Err)]
lib.ct_run_save.argtypes = [c_void_p, POINTER(Err)]
lib.ct_run_close.argtypes = [POINTER(c_void_p)]
lib.ct_run_close.restype = None


class Run:
    """with Run(["--module", "llama3", …]) as run: for metrics in run: …"""

    def __init__(self, settings, on_log=None):
        array = (c_char_p * len(settings))(*(s.encode() for s in settings))
        self._log = LOG(lambda ctx, level, text: on_log(level, text.decode()) if on_log else None)  # lives as long as the run
        self._run = c_void_p()
        options = Options(settings=array, n_settings=len(settings), reads_environment=1, on_log=self._log)
        self._call(lib.ct_run_open, byref(options), byref(self._run))
        self.facts = Facts()
        self._call(lib.ct_run_facts_get, self._run, byref(self.facts))

    @staticmethod
    def _call(function, *args):
        err = Err()
        status = function(*args, byref(err))
        if status not in (0, END_OF_DATA):
            raise CtitanError(status, err)
        return status

    def __iter__(self):
        metrics = Metrics()
        while self._call(lib.ct_run_step, self._run, byref(metrics)) == 0:
            yield metrics

    def save(self):
        self._call(lib.ct_run_save, self._run)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        lib.ct_run_close(byref(self._run))


def main():
    def on_log(level, text):
        if level >= WARNING:
            print(text, file=sys.stderr)
    try:
        with Run(sys.argv[1:], on_log) as run:
            for m in run:
                if run.facts.rank == 0:
                    print(f"step {m.step} of {run.facts.last_step}: loss {m.loss:.5f}, gradient norm {m.grad_norm:.4f}, "
                          f"{m.tokens_per_second:.0f} tokens/s", flush=True)
    except CtitanError as e:
        print(e, file=sys.stderr)
        return e.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
