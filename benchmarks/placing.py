"""Rows placed by a cluster of processes, from a chunked store, against a fit to landmarks.

    python benchmarks/placing.py [--rows 20000000] [--landmarks 1000000] [--workers 2] [--method TSNE] [--folder FOLDER]

The rows of `scaling.py` are written to a Zarr array. The output says how many seconds the fit and the placing took;
whether places have the same bits in other chunks, and in one process; how far rows are from the landmarks; and the
seconds and bits of the first million rows if a worker is killed in the middle.
"""

import argparse
import tempfile
import threading
import time
import warnings
from pathlib import Path

import dask.array as da
import numpy as np
import zarr
from dask.distributed import Client, LocalCluster
from scaling import write_mixture

import graphcouple as gc

_CHUNK, _OTHER_CHUNK = 100_000, 73_000
_AGAIN = 1_000_000


def write_store(folder, n, decay):
    """Write rows to a Zarr array, chunk by chunk, and return its path."""
    write_mixture(f"{folder}/X.npy", n, decay)
    rows = np.load(f"{folder}/X.npy", mmap_mode="r")
    store = zarr.open_array(f"{folder}/X.zarr", mode="w", shape=rows.shape, chunks=(_CHUNK, rows.shape[1]), dtype="f4")
    for a in range(0, n, _CHUNK):
        store[a : a + _CHUNK] = rows[a : a + _CHUNK]
    Path(f"{folder}/X.npy").unlink()
    return f"{folder}/X.zarr"


def first_rows(fit, n, chunk):
    """Return a fit of the same landmarks to the first rows, in chunks of another size."""
    return gc.distributed.LandmarkFit(fit.estimator, fit.X[:n].rechunk((chunk, -1)), fit.landmarks, fit.weights)


def kill_one(cluster, seconds):
    time.sleep(seconds)
    next(iter(cluster.workers.values())).process.process._process.kill()


def timed(function):
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--landmarks", type=int, default=1_000_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--decay", type=float, default=1.0)
    parser.add_argument("--method", default="TSNE")
    parser.add_argument("--folder", help="where the rows and places are kept")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        rows = write_store(folder, asked.rows, asked.decay)
        model = getattr(gc, asked.method)(random_state=0, n_jobs=asked.workers)
        fit, seconds = timed(lambda: gc.distributed.fit_landmarks(rows, model, n=asked.landmarks))
        print(f"fit of {asked.landmarks:,} landmarks: {seconds:.0f} s; {fit.estimator.stop_reason_}", flush=True)
        # Each worker has one thread, so a row is placed by one thread.
        fit.estimator.set_params(n_jobs=1)
        options = {"n_workers": asked.workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(**options) as cluster, Client(cluster):
            first_rows(fit, 1000, 500).embedding.compute()
            _, seconds = timed(lambda: fit.embedding.to_zarr(f"{folder}/Z.zarr"))
            print(f"{asked.rows:,} rows placed in {seconds:.0f} s: {asked.rows / seconds:,.0f} rows/s", flush=True)
            places = da.from_zarr(f"{folder}/Z.zarr")
            n = min(_AGAIN, asked.rows)
            expected = places[:n].compute()
            other = first_rows(fit, n, _OTHER_CHUNK).embedding.compute()
            print(f"chunks of {_OTHER_CHUNK:,}: {'same bits' if np.array_equal(other, expected) else 'OTHER BITS'}")
            coverage = fit.coverage(100)
            print(f"isolated: {coverage['isolated'].mean():.2%} of the rows looked at; {len(coverage)} chunks")
            threading.Thread(target=kill_one, args=(cluster, 20.0), daemon=True).start()
            other, seconds = timed(lambda: first_rows(fit, n, _CHUNK).embedding.compute())
            bits = "same bits" if np.array_equal(other, expected) else "OTHER BITS"
            print(f"a worker killed after 20 s: {n:,} rows in {seconds:.0f} s, {bits}", flush=True)
        one = fit.estimator.transform(fit.X[: n // 10].compute())
        # A landmark takes its place from the fit in either way.
        print(f"one process: {'same bits' if np.array_equal(one, expected[: n // 10]) else 'OTHER BITS'}")


if __name__ == "__main__":
    main()
