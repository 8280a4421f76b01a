"""Annealed minimisation of the smoothed cost (the first part of the refinement).

The cost of a metric, the weight of the constraints it violates, is piecewise constant: it has no gradient. A
sigmoid of each constraint's margin in place of the step has one, and tends to the step as the temperature
T falls. Writing A = G'G keeps A positive semidefinite and its rank at most the number of rows of G. Adam
follows the gradient over G while the temperature and the step length fall geometrically. Margins are measured
in distances:

    z_i = sign_i (|G v_i| - sqrt(|G w_i|^2 + b_i)) / T,        cost_T(G) = sum_i weight_i / (1 + exp(-z_i)).

For a pair (w = 0) that is the distance minus u or l. With squared distances instead, the tight bound of a
small ratio u / l sees a temperature (l / u)^2 times lower than the loose one, and the annealing freezes in a
trivial metric: on Wine with u = 10th and l = 90th percentile that is the difference between .335 and .312.

A step over n explicit constraints is two matrix products, V G' and its weighted transpose times V. Over all
pairs of m labelled points the pairs are never formed: the Gram matrix of the images gives every distance, and
the Laplacian of the derivatives the gradient, so that a pair costs O(k), not O(k d), for G of shape (k, d).
Large sources are followed through minibatches: of rows, or of points with all pairs among them.

References
----------
D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", International Conference on Learning
Representations, 2015.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lptml._limits import look
from lptml._threads import single_threaded
from lptml.constraints import ConstraintSet, Floats, Source
from lptml.constraints.scaling import (
    blend,
    feature_scale,
    representative,
    scale_metric,
    truncate,
    unscale_metric,
)
from lptml.refine.minibatches import Batches, batches_of

_WARM = 0.05  # final temperature from which NumPy in single precision does it
_SERIAL = 1e9  # below this many multiplications a step, the threads of BLAS cost more than they bring


@dataclass(frozen=True)
class Schedule:
    """How an annealing cools; temperatures and step lengths are in units of the largest bound.

    The defaults were chosen by hand on four splits of Wine, at u = l and at u = 10th, l = 90th percentile.
    """

    steps: int = 400
    first_temperature: float = 2.0  # hot enough that the starting metric hardly matters
    final_temperature: float = 0.003
    first_step: float = 0.7  # divided by sqrt(d): a step moves the distances by about this much
    final_step: float = 0.003

    def __iter__(self) -> Iterator[tuple[float, float]]:
        """(temperature, step length) of every step."""
        for i in range(self.steps):
            f = i / max(1, self.steps - 1)
            yield (
                self.first_temperature * (self.final_temperature / self.first_temperature) ** f,
                self.first_step * (self.final_step / self.first_step) ** f,
            )


def anneal(
    source: Source,
    start: Floats,
    *,
    steps: int = Schedule.steps,
    first_temperature: float = Schedule.first_temperature,
    final_temperature: float = Schedule.final_temperature,
    shrinkage: float = 0.0,
    prior: Floats | None = None,
    rank: int | None = None,
    rng: np.random.Generator | None = None,
    batch: int | None = None,
) -> Floats:
    """A metric of small cost, by annealed gradient descent from ``start``.

    Parameters
    ----------
    source : ConstraintSet, LabelledPairs or another Source
        The constraints with their weights. A source that lies elsewhere (on a cluster) is sampled once.
    start : array of shape (d, d)
        A positive semidefinite matrix; its scale does not matter.
    steps : int
        Gradient steps.
    first_temperature, final_temperature : float
        Width of the sigmoid at the first and the last step, relative to the largest bound (as a distance). A
        final temperature of 0.1 to 0.5 asks for clear margins instead of the smallest cost on the given
        constraints; a first temperature of 0.1 or less stays near ``start``.
    shrinkage : float in [0, 1]
        How far to move the result towards ``prior``, brought to the same mean squared distance.
    prior : array of shape (d, d), optional
        The metric to shrink to; ``start`` by default.
    rank : int, optional
        The largest rank of the result.
    rng : numpy Generator, optional
        Draws minibatches; a fixed seed by default.
    batch : int, optional
        Constraints (for ``LabelledPairs``: points) a minibatch; 16384 (512) by default.

    Returns
    -------
    A : array of shape (d, d)
        Positive semidefinite. Nothing guarantees that it costs less than ``start``; ``refine`` does.

    Examples
    --------
    >>> import numpy as np
    >>> from lptml.constraints import ConstraintSet, LabelledPairs
    >>> from lptml.refine.anneal import anneal
    >>> X = np.random.default_rng(0).normal(size=(40, 2))
    >>> pairs = LabelledPairs.from_labels(X, X[:, 0] > 0, bounds=(1.0, 1.0))
    >>> A = anneal(pairs, np.eye(2))
    >>> pairs.cost(A) < pairs.best_identity().cost
    True
    """
    start = np.asarray(start, dtype=np.float64)
    if start.shape != (source.d, source.d):
        raise ValueError(f"start must have shape ({source.d}, {source.d}), got {start.shape}")
    if not 0.0 <= shrinkage <= 1.0:
        raise ValueError(f"shrinkage must lie in [0, 1], got {shrinkage}")
    if rank is not None and not 1 <= rank <= source.d:
        raise ValueError(f"rank must lie in 1..{source.d}, got {rank}")
    if steps < 1 or not 0.0 < final_temperature <= first_temperature:
        raise ValueError("steps must be positive and 0 < final_temperature <= first_temperature")
    rng = np.random.default_rng(0) if rng is None else rng
    sample = representative(source, rng)
    A = cool(
        source,
        sample,
        start,
        Schedule(steps, first_temperature, final_temperature),
        rank=rank,
        rng=rng,
        batch=batch,
    )
    if shrinkage:
        A = blend(sample, A, start if prior is None else prior, shrinkage)
        if rank is not None:
            A = truncate(A, rank, feature_scale(sample))
    return A


def cool(
    source: Source,
    sample: ConstraintSet,
    start: Floats,
    schedule: Schedule,
    *,
    rng: np.random.Generator,
    rank: int | None = None,
    penalty: Floats | None = None,
    batch: int | None = None,
    deadline: float | None = None,
) -> Floats:
    """Run one schedule from ``start`` (what ``anneal`` does after its checks, with two options more).

    ``sample`` stands for the source where scales are chosen; ``penalty`` is P of a term <P, A> added to
    the cost; ``deadline`` is the ``time.monotonic()`` at which to stop where it stands.
    """
    scale = feature_scale(sample)  # (d,)
    unit = float(np.sqrt(sample.bound.max()))
    sizes = np.array([unit, scale.min(), scale.max(), sample.weight.max()])
    moderate = bool((sizes > 1e-9).all() and (sizes < 1e9).all())  # whether single precision holds them
    warm = schedule.final_temperature >= _WARM
    batches = batches_of(source, sample, rng, batch, moderate, warm)
    A = rescaled(sample, start) if penalty is None else start
    G = _starting_factor(scale_metric(A, scale), rank)  # (k, d), for features divided by scale
    with single_threaded(batches.work * len(G) < _SERIAL):
        G = _descend(batches, G, schedule, scale, unit, penalty, deadline)
    return unscale_metric(G.T @ G, scale)


def _descend(
    batches: Batches,
    G: Floats,
    schedule: Schedule,
    scale: Floats,
    unit: float,
    penalty: Floats | None,
    deadline: float | None,
) -> Floats:
    """Adam over G (Kingma & Ba 2015, Algorithm 1) on the smoothed cost at falling temperature."""
    first, second = np.zeros_like(G), np.zeros_like(G)
    beta1, beta2 = 0.9, 0.99
    for i, (temperature, step) in enumerate(schedule, start=1):
        if deadline is not None and time.monotonic() > deadline:
            break
        look()
        L = G / scale
        gradient = batches.gradient(L, temperature * unit)
        if penalty is not None:
            gradient += (2.0 * batches.share) * (L @ penalty)
        gradient /= scale  # chain rule of the scaling
        if i == 1:
            # Steps do not depend on its units; the squares of a huge or tiny one would leave float64.
            size_of_gradient = 2.0 ** np.frexp(np.abs(gradient).max())[1]
        gradient /= size_of_gradient
        first += (1 - beta1) * (gradient - first)
        second += (1 - beta2) * (gradient * gradient - second)
        size = np.sqrt(second / (1 - beta2**i))
        size += 1e-12 * float(size.max()) + 1e-300
        G = G - (step * unit / np.sqrt(G.shape[1]) / (1 - beta1**i)) * first / size
    return G


def rescaled(sample: ConstraintSet, A: Floats) -> Floats:
    """A at its best scale; where that is zero, at the scale where half of the lower bounds hold.

    Comparisons have no best scale, the larger the better: there the far squared distances start at ten
    margins. (On the 13 development sets of docs/generalisation.md 3, 10 and 64 end within .3 points.)
    """
    if sample.W is not None:
        far = float(np.median(np.einsum("ij,ij->i", sample.V @ A, sample.V) / sample.bound))
        return A * (10.0 / far) if far > 0 else A
    scaled = sample.best_scale(A)
    if scaled.scale > 0:
        return scaled.scale * A
    lower = sample.sign < 0
    ratio = sample.values(A)[lower] / sample.bound[lower]
    ratio = ratio[ratio > 0]
    return A / float(np.median(ratio)) if len(ratio) else A


def _starting_factor(A: Floats, rank: int | None) -> Floats:
    """G of shape (k, d) with G'G near A. A row of zeros has no gradient, so none is left at zero."""
    eigenvalues, Q = np.linalg.eigh(A)
    k = len(A) if rank is None else rank
    top = np.maximum(eigenvalues[-k:], 1e-4 * max(float(eigenvalues[-1]), 1e-300))
    return np.ascontiguousarray((Q[:, -k:] * np.sqrt(top)).T)
