"""Every baseline solves the problem its authors published: optimality conditions and independent solvers."""

import cvxpy as cp
import numpy as np
import pytest

from lptml.baselines import LFDA, LMNN, MCML, MMC, RCA, RCA_Supervised
from lptml.baselines.itml import solve_itml
from lptml.baselines.lfda import scatters
from lptml.baselines.lmnn import lmnn_objective, target_neighbours
from lptml.baselines.mcml import mcml_objective
from lptml.baselines.mmc import solve_mmc
from lptml.baselines.rca import chunk_covariance, draw_chunks
from lptml.datasets import load_iris, load_wine


def cloud(n, d, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    return rng.standard_normal((n, d)) * np.logspace(0, 1, d) + 1.5 * y[:, None], y.astype(np.int64)


def differences(n, d, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(np.arange(n) % 2 == 0, 1, -1)
    return rng.standard_normal((n, d)) * np.where(sign > 0, 1.0, 2.0)[:, None] * np.logspace(0, 1, d), sign


@pytest.mark.parametrize(("n", "d", "gamma"), [(40, 2, 1.0), (60, 4, 0.1), (30, 3, 10.0), (80, 5, 1.0)])
def test_itml_satisfies_the_kkt_conditions(n, d, gamma):
    V, sign = differences(n, d)
    A0 = np.diag(np.logspace(0, -1, d))
    bounds = (1.0, 3.0)
    found = solve_itml(V, sign, bounds, A0, gamma=gamma, max_iter=100_000, tol=1e-11)
    squared = np.einsum("ij,jk,ik->i", V, found.A, V)
    xi0 = np.where(sign > 0, bounds[0], bounds[1]) ** 2
    assert found.change <= 1e-11
    # stationarity in A and in xi
    expected = np.linalg.inv(A0) + (V * (sign * found.dual)[:, None]).T @ V
    assert np.allclose(np.linalg.inv(found.A), expected, rtol=1e-6, atol=1e-8 * np.abs(expected).max())
    assert np.allclose(1 / found.xi, 1 / xi0 - sign * found.dual / gamma, rtol=1e-7)
    # primal and dual feasibility, complementary slackness
    assert np.linalg.eigvalsh(found.A)[0] > 0
    assert (found.dual >= 0).all()
    assert (sign * (squared - found.xi) <= 1e-6 * found.xi).all()
    active = found.dual > 1e-9 * found.dual.max()
    assert np.allclose(squared[active], found.xi[active], rtol=1e-6)


def test_itml_agrees_with_a_conic_solver():
    V, sign = differences(12, 2, seed=3)
    found = solve_itml(V, sign, (1.0, 2.0), np.eye(2), gamma=1.0, max_iter=100_000, tol=1e-11)
    A, xi = cp.Variable((2, 2), PSD=True), cp.Variable(12)
    xi0 = np.where(sign > 0, 1.0, 4.0)
    squared = cp.hstack([cp.trace(np.outer(v, v) @ A) for v in V])
    divergence = cp.trace(A) - cp.log_det(A) + cp.sum(cp.multiply(1 / xi0, xi) - cp.log(xi))
    cp.Problem(cp.Minimize(divergence), [cp.multiply(sign, squared - xi) <= 0]).solve(solver=cp.CLARABEL)
    assert np.allclose(found.A, A.value, atol=1e-4 * np.abs(A.value).max())


@pytest.mark.parametrize(("n", "d", "mu"), [(24, 2, 0.5), (30, 3, 0.5), (30, 3, 0.1)])
def test_lmnn_reaches_the_convex_optimum(n, d, mu):
    X, y = cloud(n, d)
    targets = target_neighbours(X, y, 3)
    learner = LMNN(n_neighbors=3, regularization=mu, tol=1e-10, max_iter=5000).fit(X, y)
    A = cp.Variable((d, d), PSD=True)
    i, m = np.nonzero(targets >= 0)
    j = targets[i, m]
    i3, j3 = np.repeat(i, n), np.repeat(j, n)
    l3 = np.tile(np.arange(n), len(i))
    other = y[l3] != y[i3]
    i3, j3, l3 = i3[other], j3[other], l3[other]

    def squared(a, b):
        outer = np.einsum("ni,nj->nij", X[a] - X[b], X[a] - X[b]).reshape(len(a), -1)
        return outer @ cp.vec(A, order="C")

    pull, push = cp.sum(squared(i, j)), cp.sum(cp.pos(1 + squared(i3, j3) - squared(i3, l3)))
    problem = cp.Problem(cp.Minimize(mu * pull + (1 - mu) * push))
    optimum = problem.solve(solver=cp.CLARABEL)
    assert learner.objective_ >= optimum * (1 - 1e-6)
    assert learner.objective_ <= optimum * (1 + 2e-3)


@pytest.mark.parametrize(("n", "d"), [(15, 2), (18, 3)])
def test_mcml_reaches_the_convex_optimum(n, d):
    X, y = cloud(n, d, seed=1)
    learner = MCML(tol=1e-14, max_iter=5000).fit(X, y)
    A = cp.Variable((d, d), PSD=True)
    terms = []
    for i in range(n):
        others = np.flatnonzero(np.arange(n) != i)
        V = X[others] - X[i]
        squared = np.einsum("ni,nj->nij", V, V).reshape(n - 1, -1) @ cp.vec(A, order="C")
        own = (y[others] == y[i]) / (y[others] == y[i]).sum()
        terms.append(own @ squared + cp.log_sum_exp(-squared))
    optimum = cp.Problem(cp.Minimize(sum(terms) / n)).solve(solver=cp.CLARABEL)
    assert learner.objective_ == pytest.approx(optimum, abs=1e-6)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize(("n", "d"), [(30, 2), (60, 4)])
def test_mmc_reaches_the_convex_optimum(n, d, diagonal):
    V, sign = differences(n, d, seed=2)
    found = solve_mmc(V, sign, diagonal=diagonal, regularization=0.0, tol=1e-7, max_iter=5000)
    A = cp.diag(cp.Variable(d, nonneg=True)) if diagonal else cp.Variable((d, d), PSD=True)
    outer = np.einsum("ni,nj->nij", V, V).reshape(n, -1)
    apart = outer[sign < 0] @ cp.vec(A, order="C")
    close = outer[sign > 0].sum(axis=0) @ cp.vec(A, order="C")
    optimum = cp.Problem(cp.Maximize(cp.sum(cp.sqrt(apart))), [close <= 1]).solve(solver=cp.CLARABEL)
    value = np.sqrt(np.einsum("ij,jk,ik->i", V[sign < 0], found.A, V[sign < 0])).sum()
    assert value == pytest.approx(found.value, rel=1e-9)
    assert value == pytest.approx(optimum, rel=1e-5)
    assert optimum <= value + found.gap + 1e-5 * value
    assert outer[sign > 0].sum(axis=0) @ found.A.ravel() == pytest.approx(1.0)


@pytest.mark.parametrize("objective", ["lmnn", "mcml"])
def test_gradients_by_finite_differences(objective):
    X, y = cloud(25, 3, seed=4)
    Z = X / X.std(axis=0)
    targets = target_neighbours(Z, y, 2)

    def value(G):
        if objective == "lmnn":
            return lmnn_objective(G, Z, y, targets, 0.3, 0.5)
        return mcml_objective(G, Z, y)

    rng = np.random.default_rng(0)
    G, direction = rng.standard_normal((2, 3, 3)) * 0.5
    step = 1e-6
    numeric = (value(G + step * direction)[0] - value(G - step * direction)[0]) / (2 * step)
    assert (value(G)[1] * direction).sum() == pytest.approx(numeric, rel=1e-6)


def test_blocks_change_nothing(monkeypatch):
    X, y = cloud(40, 3, seed=5)
    targets, G = target_neighbours(X, y, 3), np.eye(3)
    whole = lmnn_objective(G, X, y, targets, 0.5, 0.1), mcml_objective(0.1 * G, X, y)
    monkeypatch.setattr("lptml.baselines._common.BLOCK", 3 * 40)
    parts = lmnn_objective(G, X, y, targets, 0.5, 0.1), mcml_objective(0.1 * G, X, y)
    for one, two in zip(whole, parts):
        assert one[0] == pytest.approx(two[0])
        assert np.allclose(one[1], two[1])


def test_lfda_scatters_by_their_definition():
    X, y = cloud(20, 3, seed=6)
    k, n = 4, 20
    between, within = np.zeros((3, 3)), np.zeros((3, 3))
    for i in range(n):
        for j in range(n):
            outer = np.outer(X[i] - X[j], X[i] - X[j]) / 2
            if y[i] != y[j]:
                between += outer / n
                continue
            own = X[y == y[i]]
            scale = [np.sort(np.linalg.norm(own - X[p], axis=1))[k] for p in (i, j)]
            a = np.exp(-(((X[i] - X[j]) ** 2).sum()) / (scale[0] * scale[1]))
            within += outer * a / len(own)
            between += outer * a * (1 / n - 1 / len(own))
    found_between, found_within = scatters(X, y, k)
    assert np.allclose(found_between, between)
    assert np.allclose(found_within, within)


def test_lfda_solves_its_eigenproblem():
    X, y = load_wine(return_X_y=True)
    between, within = scatters(X, y, 7)
    T = LFDA(embedding_type="plain").fit(X, y).components_.T
    values = np.diag(T.T @ between @ T)
    assert np.allclose(T.T @ within @ T, np.eye(13), atol=1e-5)
    assert np.allclose(T.T @ between @ T, np.diag(values), atol=1e-5 * values.max())
    assert (np.diff(values) <= 1e-8 * values.max()).all()
    orthonormal = LFDA(embedding_type="orthonormalized", n_components=3).fit(X, y).components_
    assert np.allclose(orthonormal @ orthonormal.T, np.eye(3))


def test_rca_by_its_definition():
    X, _ = load_iris(return_X_y=True)
    chunks = np.repeat(np.arange(30), 5)
    inner = sum(np.cov(X[chunks == c].T, bias=True) * 5 for c in range(30)) / 150
    assert np.allclose(chunk_covariance(X, chunks), inner)
    learner = RCA(regularization=0.0).fit(X, chunks)
    assert np.allclose(learner.get_mahalanobis_matrix(), np.linalg.inv(inner))
    whitened = chunk_covariance(learner.transform(X), chunks)
    assert np.allclose(whitened, np.eye(4))
    reduced = RCA(regularization=0.0, n_components=2).fit(X, chunks)
    assert np.allclose(chunk_covariance(reduced.transform(X), chunks), np.eye(2))


def test_chunks_are_disjoint_and_pure():
    y = np.repeat([0, 1, 2], [9, 5, 1])
    chunks = draw_chunks(y, 100, 2, np.random.default_rng(0))
    sizes = np.bincount(chunks[chunks >= 0])
    assert (sizes == 2).all()
    assert len(sizes) == 4 + 2
    assert all(np.unique(y[chunks == c]).size == 1 for c in range(len(sizes)))
    assert np.unique(draw_chunks(y, 3, 2, np.random.default_rng(0))).size == 4


def test_rca_of_classes_is_within_class_whitening():
    X, y = load_iris(return_X_y=True)
    learner = RCA_Supervised(regularization=0.0).fit(X, y)
    assert np.allclose(learner.get_mahalanobis_matrix(), np.linalg.inv(chunk_covariance(X, y)))


@pytest.mark.parametrize("factor", [1e-6, 1e6])
@pytest.mark.parametrize("learner", [LMNN(tol=1e-12, max_iter=5000), MCML(tol=1e-12), "MMC"])
def test_the_unit_of_the_features_does_not_matter(learner, factor):
    """Margin and temperature are fixed, so the learned distances themselves are the same in any unit."""
    X, y = cloud(150, 4)  # no ties between distances, which rounding would break differently
    if learner == "MMC":
        index = np.random.default_rng(0).integers(0, 150, (300, 2))
        index = index[index[:, 0] != index[:, 1]]
        label = np.where(y[index[:, 0]] == y[index[:, 1]], 1, -1)
        one, two = (MMC().fit(unit * X[index], label).transform(unit * X) for unit in (1.0, factor))
    else:
        one, two = (learner.fit(unit * X, y).transform(unit * X) for unit in (1.0, factor))
    gram = [rows @ rows.T for rows in (one - one.mean(axis=0), two - two.mean(axis=0))]
    assert np.allclose(gram[0], gram[1], atol=2e-2 * np.abs(gram[0]).max())
