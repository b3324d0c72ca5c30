"""Runs that are interrupted, and go on."""

import inspect
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import graphcouple as gc
from graphcouple import estimators
from graphcouple.optimize import snapshots

X, y = gc.datasets.load("iris")
X, y = X[::2], y[::2]


class Killed(Exception):
    """What ends a run in the middle."""


def sample(n, rng=0):
    return np.random.default_rng(rng).normal(size=(n, 6))


FITS = {
    "t-SNE": lambda **o: gc.TSNE(perplexity=10, random_state=0, **o),
    "UMAP": lambda **o: gc.UMAP(random_state=0, **o),
    "without seed": lambda **o: gc.TSNE(perplexity=10, random_state=np.random.RandomState(5), init="random", **o),
    "noisy": lambda **o: gc.UMAP(repulsion="sampled", random_state=0, **o),
    "momentum": lambda **o: gc.TSNE(perplexity=10, learning_rate=100.0, random_state=0, **o),
    "fresh graphs": lambda **o: gc.TSNE(perplexity=10, terms=[gc.ComponentMeans()], random_state=0, **o),
    "majorized": lambda **o: gc.LaptSNE(perplexity=10, n_clusters=3, random_state=0, **o),
    "batches": lambda **o: gc.LaptSNE(perplexity=10, n_clusters=3, batch_size=20, random_state=0, **o),
    "several starts": lambda **o: gc.SNE(perplexity=10, n_starts=3, random_state=0, **o),
    "stress": lambda **o: gc.MetricMDS(pairs_per_point=20, random_state=0, **o),
    "hierarchical": lambda **o: gc.HierarchicalCoupling(gc.TSNE(perplexity=10, **o), random_state=0),
    "landmarks": lambda **o: gc.TSNE(perplexity=10, n_landmarks=40, random_state=0, **o),
}


def killed_at(moment):
    """Return a callback that ends the run at its n-th call."""
    calls = [0]

    def callback(*ignored):
        calls[0] += 1
        if calls[0] == moment:
            raise Killed

    return callback


@pytest.fixture(autouse=True)
def _snapshots_at_once(monkeypatch):
    monkeypatch.setattr(snapshots, "_SECONDS", -1.0)
    monkeypatch.setattr(snapshots, "_SHARE", 1e9)
    monkeypatch.setattr(snapshots, "_EVERY", 7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("moment", [3, pytest.param(6, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", FITS)
def test_a_killed_run_goes_on_to_the_same_bits(name, moment, tmp_path):
    path = tmp_path / "run"
    expected = FITS[name](max_iter=60).fit(X)
    with pytest.raises(Killed):
        FITS[name](max_iter=60, checkpoint=path, callback=killed_at(moment)).fit(X)
    first = []
    again = FITS[name](max_iter=60, checkpoint=path, callback=lambda i, loss, Z: first.append(i))
    again.fit(X, resume=True)
    assert moment < 3 or first[0] > 0 or name == "several starts"
    assert np.array_equal(again.embedding_, expected.embedding_)
    for figure in ("loss_", "stress_", "start_losses_"):
        assert np.array_equal(getattr(again, figure, None), getattr(expected, figure, None))
    # A file of a run that has ended holds its end.
    finished = FITS[name](max_iter=60, checkpoint=path, callback=killed_at(1)).fit(X, resume=True)
    assert np.array_equal(finished.embedding_, expected.embedding_)
    assert [path] == list(tmp_path.iterdir())


def test_the_pairs_that_local_map_has_drawn_are_kept_and_checked(tmp_path):
    """Integers, of other sizes than the points: drawn at iteration 230, and used up to 239."""
    from graphcouple.couplings import Problem

    options = {"max_iter": 260, "random_state": 0}
    expected = gc.LocalMAP(**options).fit(X)
    with pytest.raises(Killed):
        gc.LocalMAP(**options, checkpoint=tmp_path / "run", callback=killed_at(25)).fit(X)
    again = gc.LocalMAP(**options, checkpoint=tmp_path / "run").fit(X, resume=True)
    assert np.array_equal(again.embedding_, expected.embedding_)
    sentence = gc.LocalMAP().sentence
    law = sentence.input.posterior(X)
    rng = np.random.RandomState(0)
    problem = Problem(X, None, law, sentence.latent, 2, gc.Exact(), "euclidean", rng, 1)
    objective = sentence.coupling.bind(problem).at(230, expected.embedding_)
    indptr, indices, halves = objective.basis(expected.embedding_)
    for damaged in ((indptr, indices + 7, halves), (indptr[::-1], indices, halves), (indptr[:9], indices, halves)):
        with pytest.raises(ValueError, match="ind"):
            objective.with_basis(damaged)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("make", [lambda **o: gc.TSNE(perplexity=10, **o), gc.MetricMDS])
def test_a_checkpoint_leaves_the_random_numbers_of_later_fits_as_they_are(make, tmp_path):
    def maps(paths, **resume):
        drawn = np.random.RandomState(3)
        method = make(init="random", max_iter=5, random_state=drawn)
        found = []
        for path in paths:
            if path is not None:
                method.set_params(checkpoint=path)
            found.append(method.fit(X, **resume).embedding_)
        return found

    paths = [tmp_path / str(number) for number in range(3)]
    expected = maps([None] * 3)
    assert not np.array_equal(*expected[:2])
    assert np.array_equal(maps(paths), expected)
    # The script of a killed process fits the first two again, and then goes on to the third.
    paths[2].unlink()
    assert np.array_equal(maps(paths, resume=True), expected)
    np.random.seed(3)
    method = make(init="random", max_iter=5)
    runs = [method.set_params(checkpoint=tmp_path / f"run {k}").fit(X, resume=True).embedding_ for k in range(3)]
    assert np.array_equal(runs, expected)
    before = np.random.get_state()[1].copy()
    assert np.array_equal(method.fit(X, resume=True).embedding_, expected[2])
    assert np.array_equal(np.random.get_state()[1], before)


@pytest.mark.parametrize("n", [300, pytest.param(2100, marks=pytest.mark.nightly)])
def test_a_process_that_is_killed_goes_on(n, tmp_path):
    code = f"""
        import os, signal, sys
        import numpy as np, graphcouple as gc
        from graphcouple.optimize import snapshots
        snapshots._SECONDS = 0.0
        X = np.random.default_rng(0).normal(size=({n}, 6))
        def kill(i, loss, Z):
            if i == 60: os.kill(os.getpid(), signal.SIGKILL)
        gc.TSNE(random_state=0, max_iter=80, checkpoint=sys.argv[1], callback=kill).fit(X)
    """
    path = tmp_path / "run"
    process = subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code), str(path)], timeout=300)
    assert process.returncode == -signal.SIGKILL
    went = []
    options = {"random_state": 0, "max_iter": 80}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = gc.TSNE(**options, checkpoint=path, callback=lambda i, loss, Z: went.append(i))
        again.fit(sample(n), resume=True)
        assert went[0] >= 50
        assert np.array_equal(again.embedding_, gc.TSNE(**options).fit_transform(sample(n)))


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    path = tmp_path / "run"
    gc.TSNE(perplexity=10, random_state=0, max_iter=20, checkpoint=path).fit(X)

    def fit(X, **changed):
        options = {"perplexity": 10, "random_state": 0, "max_iter": 20, "checkpoint": path, **changed}
        return gc.TSNE(**options).fit(X, resume=True)

    fit(X, n_jobs=1, verbose=0)
    for name, changed in {"perplexity": 11, "random_state": 1, "max_iter": 21}.items():
        with pytest.raises(ValueError, match=f"another run: it differs in {name}"):
            fit(X, **{name: changed})
    with pytest.raises(ValueError, match="differs in X"):
        fit(X + 1e-9)
    with pytest.raises(ValueError, match="differs in class"):
        gc.SNE(perplexity=10, random_state=0, max_iter=20, checkpoint=path).fit(X, resume=True)
    near = {"metric": lambda u, v: abs(u - v).sum(), "random_state": 0, "max_iter": 20, "checkpoint": path}
    first = gc.TSNE(**near, perplexity=10).fit(X[:40]).embedding_
    assert np.array_equal(fit(X[:40], **near).embedding_, first)
    with pytest.raises(ValueError, match="differs in metric"):
        fit(X[:40], **{**near, "metric": lambda u, v: abs(u - v).max()})
    path.write_bytes(b"no zip")
    with pytest.raises(ValueError, match="not a graphcouple checkpoint"):
        fit(X)
    gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit(X).save(path)
    with pytest.raises(ValueError, match="not a graphcouple checkpoint"):
        fit(X)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", ["Z", "pairs", "rows", "dtype", "keys"])
def test_a_damaged_state_never_reaches_compiled_loops(tmp_path, what):
    from graphcouple._support import storage
    from graphcouple.optimize import Solution

    path = tmp_path / "run"
    with pytest.raises(Killed):
        FITS["t-SNE"](max_iter=60, checkpoint=path, callback=killed_at(6)).fit(X)
    kind = "graphcouple checkpoint"
    content = storage.read(path, {"Solution": Solution}, kind=kind)
    state = content["going"]["state"]
    (s, y, inverse), *others = state["pairs"]
    changes = {
        "Z": {"Z": np.zeros((3, 2))},
        "pairs": {"pairs": ((s[:5], y, inverse), *others)},
        "rows": {"gradient": np.full_like(state["gradient"], np.nan)},
        "dtype": {"Z": state["Z"].astype(complex)},
        "keys": {},
    }
    state.update(changes[what])
    if what == "keys":
        del content["ended"]
    storage.write(path, content, kind=kind)
    with pytest.raises(ValueError, match="damaged"):
        FITS["t-SNE"](max_iter=60, checkpoint=path).fit(X, resume=True)


@pytest.mark.filterwarnings("ignore")
def test_resume_begins_where_there_is_no_file_and_needs_a_path(tmp_path):
    expected = gc.TSNE(perplexity=10, random_state=0, max_iter=20).fit_transform(X)
    method = gc.TSNE(perplexity=10, random_state=0, max_iter=20, checkpoint=str(tmp_path / "run"))
    assert np.array_equal(method.fit(X, resume=True).embedding_, expected)
    with pytest.raises(ValueError, match="checkpoint is None"):
        gc.TSNE().fit(X, resume=True)
    with pytest.raises(ValueError, match="folder that exists"):
        gc.TSNE(checkpoint=tmp_path / "nowhere" / "run").fit(X)


@pytest.fixture(autouse=True)
def ctrl_c_interrupts():
    """Let SIGINT raise, also where a shell started the tests in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupting(at):
    """Return a callback during which Ctrl-C is pressed."""
    return lambda i, loss, Z: signal.raise_signal(signal.SIGINT) if i == at else None


@pytest.mark.parametrize("make", [gc.TSNE, gc.MetricMDS, lambda **o: gc.UMAP(repulsion="sampled", **o)])
def test_ctrl_c_returns_what_there_is_where_that_is_asked_for(make):
    method = make(random_state=0, max_iter=200, callback=interrupting(30))
    with pytest.raises(KeyboardInterrupt):
        method.fit(X)
    assert not hasattr(method, "embedding_")
    method.set_params(on_interrupt="return")
    with pytest.warns(ConvergenceWarning, match="interrupted at iteration 30"):
        method.fit(X)
    assert "interrupted at iteration 30" in method.stop_reason_
    assert method.n_iter_ == 30
    assert np.isfinite(method.embedding_).all()
    assert len(np.unique(method.embedding_, axis=0)) > 1


@pytest.mark.filterwarnings("ignore")
def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path):
    options = {"perplexity": 10, "random_state": 0, "max_iter": 60}
    expected = gc.TSNE(**options).fit_transform(X)
    kept = {"checkpoint": tmp_path / "run", "on_interrupt": "return"}
    gc.TSNE(**options, **kept, callback=interrupting(30)).fit(X)
    assert np.array_equal(gc.TSNE(**options, **kept).fit(X, resume=True).embedding_, expected)


def test_a_fit_that_replaces_an_unfinished_run_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr("graphcouple.optimize.snapshots._EVERY", 1)
    monkeypatch.setattr("graphcouple.optimize.snapshots._SECONDS", 0.0)
    kept = {"perplexity": 10, "random_state": 0, "checkpoint": tmp_path / "run", "max_iter": 20}
    with pytest.raises(KeyboardInterrupt):
        gc.TSNE(**kept, callback=interrupting(10)).fit(X)
    gc.TSNE(**kept | {"perplexity": 11, "checkpoint": tmp_path / "other"}).fit(X)
    with pytest.warns(UserWarning, match=r"run holds this run up to iteration \d+\. resume=True continues it"):
        gc.TSNE(**kept).fit(X)
    # A run that has ended is no loss.
    gc.TSNE(**kept).fit(X)


@pytest.mark.filterwarnings("ignore")
def test_solve_keeps_snapshots_of_any_objective(tmp_path):
    points = sample(80)
    law = gc.GraphModel(gc.Gaussian(), "D", gc.Perplexity(10)).posterior(points)
    graphs = gc.CrossEntropy(law, gc.GraphModel(gc.Student(), "E"))
    pairs = [(graphs, gc.LBFGS()), (graphs, gc.MomentumGains()), (gc.GramMatching(points), gc.ExactSteps())]
    for objective, optimizer in pairs:
        path = tmp_path / type(optimizer).__name__
        options = {"max_iter": 80, "check_every": 5}
        expected = gc.solve(objective, points[:, :2], optimizer, **options)
        kept = gc.optimize.Snapshots(path, {"start": "columns"})
        with pytest.raises(Killed):
            gc.solve(objective, points[:, :2], optimizer, **options, snapshots=kept, callback=killed_at(8))
        kept = gc.optimize.Snapshots(path, {"start": "columns"}, resume=True)
        found = gc.solve(objective, points[:, :2], optimizer, **options, snapshots=kept)
        assert np.array_equal(found.Z, expected.Z)
        assert np.array_equal(found.loss_history, expected.loss_history)


def test_options_of_a_run_stand_alone_or_together():
    seen = []

    def watch(iteration, loss, Z):
        seen.append(iteration)

    together = gc.TSNE(run=gc.RunOptions(n_starts=2, callback=watch), max_iter=20, random_state=0)
    alone = clone(gc.TSNE(n_starts=2, callback=watch, max_iter=20, random_state=0))
    assert repr(together) == repr(alone)
    assert (together.fit_transform(X) == alone.fit_transform(X)).all()
    assert seen
    assert len(alone.start_losses_) == 2
    changed = clone(alone).set_params(run__n_starts=1, warm_start=True)
    assert (changed.n_starts, changed.warm_start, changed.callback, alone.n_starts) == (1, True, watch, 2)
    changed.callback, changed.n_starts, changed.warm_start = None, "auto", False
    assert changed.run is None
    assert changed.sentence == gc.TSNE(max_iter=20, random_state=0).sentence
    with pytest.raises(ValueError, match="'n_starts' parameter of TSNE must be"):
        gc.TSNE(run=gc.RunOptions(n_starts=0)).fit(X)
    with pytest.raises(ValueError, match="'run' parameter of TSNE must be"):
        gc.TSNE(run={"n_starts": 2}).fit(X)


class Watching:
    """A callback that cannot be copied, and stops a run."""

    def __init__(self):
        self.seen, self.lock = [], threading.Lock()

    def __call__(self, iteration, loss, Z):
        with self.lock:
            self.seen.append(iteration)
        return iteration >= 20


@pytest.mark.parametrize("wrap", [clone, gc.HierarchicalCoupling, lambda plain: gc.TSNE(init=plain, max_iter=10)])
def test_copies_of_a_method_report_to_the_users_callback_and_have_their_own_sums(wrap):
    watch, summation = Watching(), gc.summation.ParticleMesh()
    plain = gc.TSNE(perplexity=5, max_iter=40, random_state=0, callback=watch, summation=summation)
    wrap(plain).fit(X)
    assert watch.seen == [0, 10, 20]
    assert clone(plain).summation is not summation


def test_no_constructor_has_more_than_26_parameters():
    classes = [value for value in vars(estimators).values() if isinstance(value, type) and value is not gc.Sentence]
    longest = max(classes, key=lambda each: len(inspect.signature(each).parameters))
    assert len(inspect.signature(longest).parameters) <= 26, longest
