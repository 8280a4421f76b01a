"""Which constraints a trial sees: Bernoulli samples over the grid p = (1+eps)^-i of Algorithm 2.

A trial at probability p works on a sample that holds each of the n constraints independently with
probability p. Such a sample is its size, a binomial number, and a uniformly random subset of that size. The
subset is the first ``size`` places of a random permutation of 0..n-1, and the permutation is computed, not
stored: a Feistel network keyed by the trial's seed, with cycle walking for an n that is no power of two
(Black and Rogaway, "Ciphers with arbitrary finite domains", 2002). So

- drawing costs time in proportion to the sample, whatever n is;
- the head of a sample of thousands of millions of constraints can be looked at without drawing the rest: a
  sample is infeasible as soon as its head is;
- any machine can tell, for the constraints that it holds, which of them a trial's sample contains.

A trial's randomness comes from its own seed, spawned from the search's by the trial's number. The same trial
draws the same sample on every engine, for every number of workers and partitions.

References
----------
J. Black, P. Rogaway, "Ciphers with arbitrary finite domains", CT-RSA, 2002.

G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators", OOPSLA, 2014 (the mixing
function).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lptml._jit import kernel
from lptml.constraints import Floats, Ints

MOST_STEPS = 100_000  # a search visits each once in as many trials; the paper's grids have tens
_ROUNDS = 8
_FEWEST_BITS = 8  # a wider domain than a tiny n needs: short halves would leave the rounds too few functions


@dataclass(frozen=True)
class Sample:
    """A random subset of 0..n-1 that is computed where it is needed.

    Parameters
    ----------
    n : int
        The number of constraints.
    size : int
        How many of them are in the sample.
    key : int
        Which of the permutations of 0..n-1; an unsigned number of 64 bits.

    Examples
    --------
    >>> from lptml.search.sampling import Sample
    >>> sample = Sample(n=10**12, size=10**9, key=7)
    >>> head = sample.head(3)
    >>> bool(sample.contains(head).all())
    True
    >>> Sample(n=5, size=5, key=7).indices()
    array([0, 1, 2, 3, 4])
    """

    n: int
    size: int
    key: int

    def head(self, count: int) -> Ints:
        """The first ``count`` members (all, if there are fewer) in the sample's own random order."""
        return self.part(0, count)

    def part(self, start: int, stop: int) -> Ints:
        """Members ``start`` to ``stop`` in the sample's own random order."""
        stop = min(stop, self.size)
        out = np.empty(max(0, stop - start), dtype=np.int64)
        _permute(start, self.n, self._bits, np.uint64(self.key), out)
        return out

    def indices(self) -> Ints:
        """All members in ascending order."""
        if self.size == self.n:
            return np.arange(self.n, dtype=np.int64)
        return np.sort(self.head(self.size))

    def contains(self, index: Ints) -> NDArray[np.bool_]:
        """Which of the constraints with these numbers are in the sample."""
        if self.size == self.n:
            return np.ones(len(index), dtype=np.bool_)
        place = np.empty(len(index), dtype=np.int64)
        index = np.ascontiguousarray(index, dtype=np.int64)
        _unpermute(index, self.n, self._bits, np.uint64(self.key), place)
        return place < self.size

    @property
    def _bits(self) -> int:
        return max(_FEWEST_BITS, int(self.n - 1).bit_length())


def draw_sample(n: int, p: float, rng: np.random.Generator) -> Sample:
    """A Bernoulli sample of 0..n-1: each number is in it independently with probability p."""
    size = n if p >= 1.0 else int(rng.binomial(n, p))
    return Sample(n=n, size=size, key=int(rng.bit_generator.random_raw()))


def trial_rng(entropy: int, trial: int, *stream: int) -> np.random.Generator:
    """The random numbers of one trial; ``stream`` tells independent uses within a trial apart."""
    seed = np.random.SeedSequence(entropy, spawn_key=(trial, *stream))
    return np.random.Generator(np.random.PCG64(seed))


def probability_grid(n: int, epsilon: float) -> Floats:
    """The probabilities p = (1+eps)^-i, i = 0..log_{1+eps} n, of Algorithm 2.

    Examples
    --------
    >>> from lptml.search.sampling import probability_grid
    >>> probability_grid(10, 1.0)
    array([1.   , 0.5  , 0.25 , 0.125])
    """
    last = int(grid_steps(max(n, 1), epsilon) + 1e-9)
    return (1.0 + epsilon) ** -np.arange(last + 1.0)  # (levels,)


def grid_steps(ratio: float, epsilon: float) -> float:
    """How many steps of a factor 1+eps lead from 1 to ``ratio``: the logarithm to the base 1+eps.

    A grid is laid out in memory and visited step by step, so one finer than ``MOST_STEPS`` is refused.
    """
    if not epsilon > 0 or not math.isfinite(epsilon):
        raise ValueError(f"epsilon must be a positive number, got {epsilon!r}")
    steps = math.log(ratio) / math.log1p(epsilon)
    if steps > MOST_STEPS:
        raise ValueError(
            f"epsilon = {epsilon:g} makes a grid of {steps:.1e} sampling rates, more than a search can visit "
            f"({MOST_STEPS:,}); use a larger epsilon"
        )
    return steps


def grid_position(trial: int, levels: int) -> int:
    """Where on a grid of so many levels a trial works.

    Every run of ``levels`` trials visits each level once, in steps of the golden section: stopped at any
    moment, a search has covered the whole grid evenly (LPTML_t of Section 3 spreads its t trials this way).
    """
    return trial % levels * _golden_step(levels) % levels


def _golden_step(levels: int) -> int:
    step = max(1, round(levels * (math.sqrt(5.0) - 1.0) / 2.0))
    while math.gcd(step, levels) != 1:
        step += 1
    return step


@kernel
def _mix(x: np.uint64) -> np.uint64:
    """The finaliser of SplitMix64: every bit of x reaches every bit of the result."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel
def _round_keys(key: np.uint64) -> NDArray[np.uint64]:
    keys = np.empty(_ROUNDS, dtype=np.uint64)
    for r in range(_ROUNDS):
        key += np.uint64(0x9E3779B97F4A7C15)
        keys[r] = _mix(key)
    return keys


@kernel
def _permute(start: int, n: int, bits: int, key: np.uint64, out: Ints) -> None:
    """out[k] = permutation(start + k)."""
    keys = _round_keys(key)
    low = np.uint64(bits // 2)
    low_mask = (np.uint64(1) << low) - np.uint64(1)
    high_mask = (np.uint64(1) << np.uint64(bits - bits // 2)) - np.uint64(1)
    limit = np.uint64(n)
    for k in range(out.shape[0]):
        x = np.uint64(start + k)
        while True:  # cycle walking: the network permutes 2^bits numbers, those from n on are skipped
            left, right = x >> low, x & low_mask
            for r in range(0, _ROUNDS, 2):
                left ^= _mix(right + keys[r]) & high_mask
                right ^= _mix(left + keys[r + 1]) & low_mask
            x = (left << low) | right
            if x < limit:
                break
        out[k] = np.int64(x)


@kernel
def _unpermute(index: Ints, n: int, bits: int, key: np.uint64, out: Ints) -> None:
    """out[k] = the place of index[k] in the permutation."""
    keys = _round_keys(key)
    low = np.uint64(bits // 2)
    low_mask = (np.uint64(1) << low) - np.uint64(1)
    high_mask = (np.uint64(1) << np.uint64(bits - bits // 2)) - np.uint64(1)
    limit = np.uint64(n)
    for k in range(out.shape[0]):
        x = np.uint64(index[k])
        while True:
            left, right = x >> low, x & low_mask
            for r in range(_ROUNDS - 2, -1, -2):
                right ^= _mix(left + keys[r + 1]) & low_mask
                left ^= _mix(right + keys[r]) & high_mask
            x = (left << low) | right
            if x < limit:
                break
        out[k] = np.int64(x)
