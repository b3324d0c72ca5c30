"""
A map of texts
==============

Texts are embedded, clustered on the map, and each cluster is named by its words; the map is a picture and a searchable
page. Nothing is downloaded: `write` simulates embeddings of sentences, with a realistic spectrum and nested topics. For
your own embeddings and texts, call `draw`.
"""

import numpy as np
from sklearn.cluster import HDBSCAN
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.neighbors import KNeighborsClassifier

import graphcouple as gc

SYLLABLES = np.array(["ba", "ce", "di", "fo", "gu", "ka", "le", "mi", "no", "pu", "ra", "se", "ti", "vo", "zu"])


def write(n, p=384, n_topics=400):
    """Return embeddings of shape (n, p) on a sphere, and a text for each."""
    rng = np.random.default_rng(0)
    spectrum = np.arange(1, p + 1) ** -0.5
    fields = rng.integers(30, size=n_topics)
    topics = rng.normal(size=(30, p))[fields] + 0.8 * rng.normal(size=(n_topics, p))
    topic = np.minimum(rng.pareto(0.8, size=n) * 20, n_topics - 1).astype(int)
    X = (topics[topic] + 1.2 * rng.normal(size=(n, p)).astype(np.float32)) * spectrum
    words = np.array(["".join(SYLLABLES[rng.integers(15, size=3)]) for _ in range(4 * n_topics + 200 + 4 * 30)])
    of_topic = words[: 4 * n_topics].reshape(n_topics, 4)[topic, rng.integers(4, size=(2, n))]
    of_field = words[-120:].reshape(30, 4)[fields[topic], rng.integers(4, size=n)]
    common = words[4 * n_topics : -120][rng.integers(200, size=(3, n))]
    texts = [" ".join(each) for each in zip(*of_topic, of_field, *common, strict=True)]
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), texts


def draw(X, texts, seed=0):
    """Embed, cluster and name; return the estimator, the names and the page."""
    clean = np.flatnonzero(np.isfinite(X).all(axis=1) & (np.linalg.norm(X, axis=1) > 0))
    X, texts = X[clean], [texts[i] for i in clean]
    tsne = gc.TSNE(metric="cosine", random_state=seed).fit(X)
    Z = tsne.embedding_
    # HDBSCAN compares all pairs, so it sees a sample; the others belong to the cluster of their nearest neighbours.
    sample = np.random.default_rng(seed).permutation(len(Z))[:20_000]
    found = HDBSCAN(min_cluster_size=max(len(sample) // 200, 5), copy=True).fit_predict(Z[sample])
    clusters = KNeighborsClassifier(5).fit(Z[sample], found).predict(Z)
    names = named(texts, clusters)
    gc.plotting.plot_class_means(Z, names)
    return tsne, names, gc.plotting.interactive(Z, names, hover=texts, title="topics")


def named(texts, clusters):
    """Return each text's cluster by its three most telling words; outliers have no name."""
    counter = CountVectorizer(min_df=2)
    words = counter.fit_transform(texts)
    kinds = np.unique(clusters[clusters >= 0])
    sums = np.vstack([np.asarray(words[clusters == k].sum(axis=0)) for k in kinds])
    telling = TfidfTransformer(sublinear_tf=True).fit_transform(sums).toarray().argsort(axis=1)[:, :-4:-1]
    vocabulary = counter.get_feature_names_out()
    names = np.array([*(" ".join(vocabulary[row]) for row in telling), ""])
    return names[np.where(clusters >= 0, np.searchsorted(kinds, clusters), -1)]


# %%
X, texts = write(5000)
tsne, names, page = draw(X, texts)
print(f"{len(X):,} texts in {len(set(names)) - 1} clusters")
print(gc.metrics.evaluate(X, tsne.embedding_, metric="cosine"))

# %%
# ``page.save("topics.html")`` writes the page.
page  # noqa: B018
