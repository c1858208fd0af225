"""Verdicts on printed moments of LDA and their sensitivities, by enumeration and by search."""

import itertools
import math

import numpy as np
import pytest
from plain_moments import (
    all_documents,
    constants,
    cube,
    diagonal,
    documents_of,
    pair_moment,
    spread,
    triple_moment,
    u_statistics,
)

MU = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
ALPHAS = [np.array([0.3, 0.7]), np.array([0.5, 1.5])]


def raw_moments(alpha):
    """E[x1], E[x1 (x) x2], E[x1 (x) x2 (x) x3] of LDA, from the moments of a Dirichlet law."""
    n = alpha.sum()
    first = alpha / n
    second = (np.outer(alpha, alpha) + np.diag(alpha)) / (n * (n + 1))
    third = cube(alpha) + spread(np.diag(alpha), alpha) + 2 * diagonal(alpha)
    third = third / (n * (n + 1) * (n + 2))
    return (first @ MU, MU.T @ second @ MU, np.einsum("abc,ai,bj,ck->ijk", third, MU, MU, MU))


def lda_documents(alpha):
    """Every ordered document of three words, with its exact probability."""
    third = raw_moments(alpha)[2]
    words = list(itertools.product(range(3), repeat=3))
    return documents_of(words, 3), np.array([third[w] for w in words])


def expectation(statistic, alpha):
    documents, probabilities = lda_documents(alpha)
    return sum(p * statistic(x) for x, p in zip(documents, probabilities, strict=True))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_moments_of_a_document_are_unbiased(alpha):
    moments = (lambda x: x / 3, pair_moment, triple_moment)
    for moment, true in zip(moments, raw_moments(alpha), strict=True):
        np.testing.assert_allclose(expectation(moment, alpha), true, atol=1e-14)
    # Of whole counts they are probabilities.
    for moment in moments[1:]:
        values = np.array([moment(x).ravel() for x in all_documents(4, 5)])
        assert values.min() >= 0
        np.testing.assert_allclose(values.sum(axis=1), 1)


def test_third_moment_with_a_mode_twice_is_not_symmetric():
    """(8) as printed has e_i e_j e_j beside e_j e_i e_i: the sum over i and j takes it twice."""
    c = np.array([2.0, 1.0, 1.0])
    twice = np.einsum("i,jk->ijk", c, np.diag(c))
    once = np.einsum("k,ij->ijk", c, np.diag(c))
    printed = (cube(c) + 2 * diagonal(c) - once - 2 * twice) / 24
    assert np.abs(printed - printed.transpose(1, 0, 2)).max() > 0.05
    assert printed.min() < 0


@pytest.mark.parametrize("alpha", ALPHAS)
def test_corrected_moments_are_sums_over_topics(alpha):
    n = alpha.sum()
    a, b, c = constants(n)
    m, pairs, triples = raw_moments(alpha)
    M2 = sum(w / (n * (n + 1)) * np.outer(v, v) for w, v in zip(alpha, MU, strict=True))
    M3 = sum(2 * w / (n * (n + 1) * (n + 2)) * cube(v) for w, v in zip(alpha, MU, strict=True))
    np.testing.assert_allclose(pairs - a * np.outer(m, m), M2, atol=1e-14)
    np.testing.assert_allclose(triples + b * spread(pairs, m) + c * cube(m), M3, atol=1e-14)


def test_second_moment_of_a_corpus_is_unbiased():
    """(18), over every corpus of two documents."""
    alpha = ALPHAS[0]
    documents, p = lda_documents(alpha)
    found = sum(
        p[i] * p[j] * u_statistics([documents[i], documents[j]], alpha.sum())[0]
        for i, j in itertools.product(range(len(p)), repeat=2)
    )
    m, pairs, _ = raw_moments(alpha)
    np.testing.assert_allclose(found, pairs - constants(alpha.sum())[0] * np.outer(m, m))


@pytest.mark.parametrize("n", [5, 10, 100])
def test_equation_20_is_biased_by_one_over_n(n):
    """The sum of M2_n (x) M1_m over all n and m, in the place of that over different ones."""
    alpha = ALPHAS[1]
    m, pairs, _ = raw_moments(alpha)
    own = expectation(lambda x: np.multiply.outer(pair_moment(x), x / 3), alpha)
    expected = (n * (n - 1) * np.multiply.outer(pairs, m) + n * own) / (n * (n - 1))
    bias = np.linalg.norm(expected - np.multiply.outer(pairs, m))
    relative = (n - 1) * bias / np.linalg.norm(np.multiply.outer(pairs, m))
    # Whatever n, the same over n - 1; the missing term has about the norm of the moment itself.
    assert relative == pytest.approx(
        np.linalg.norm(own) / np.linalg.norm(pairs) / np.linalg.norm(m)
    )
    assert relative > 0.9


def bias_of_equation_21(documents, n):
    """Relative bias of the cube of a sum over n documents, each drawn uniformly."""
    m, own = documents.mean(axis=0), documents.T @ documents / len(documents)
    thirds = sum(map(cube, documents)) / len(documents)
    expected = n * (n - 1) * (n - 2) * cube(m) + n * (n - 1) * spread(own, m) + n * thirds
    return np.linalg.norm(expected - cube(m)) / np.linalg.norm(cube(m))


def test_equation_21_lacks_its_normalisation():
    """It is n^3 times too large at least: 124 of 125 parts are bias at n = 5, whatever the law."""
    assert bias_of_equation_21(np.eye(1), 5) == pytest.approx(5**3 - 1)
    for n_words in range(2, 25):
        assert bias_of_equation_21(np.eye(n_words), 5) > 5**3 - 1
    # Pure documents of 24 words in equal shares: more than twice that.
    assert bias_of_equation_21(np.eye(24), 5) == pytest.approx(266, abs=5)


def test_third_permutation_is_the_second_again():
    m, pairs, _ = raw_moments(ALPHAS[0])
    B1 = np.multiply.outer(pairs, m)
    B2 = B1.transpose(0, 2, 1)  # [B2]_ijk = [B1]_ikj
    printed = np.einsum("kij->ijk", B1)  # [B3]_ijk = [B1]_kij
    mended = np.einsum("jki->ijk", B1)  # [B3]_ijk = [B1]_jki
    np.testing.assert_allclose(printed, B2)
    np.testing.assert_allclose(B1 + B2 + mended, spread(pairs, m))
    total = B1 + B2 + printed
    assert np.abs(total - total.transpose(1, 0, 2)).max() > 0.005


@pytest.mark.parametrize("alpha0", [1.0, 2.0, 0.5])
def test_equations_64_66_and_68_hold_for_unit_concentration_alone(alpha0):
    alpha = alpha0 * np.array([0.4, 0.6])
    m, pairs, triples = raw_moments(alpha)
    a, b, c = constants(alpha0)
    M2 = pairs - a * np.outer(m, m)
    M3 = triples + b * spread(pairs, m) + c * cube(m)
    as_64 = pairs - np.outer(m, m) / (alpha0 * (alpha0 + 1))
    as_66 = triples - spread(pairs, m) / (alpha0 + 2)
    as_66 += 2 * cube(m) / (alpha0 * (alpha0 + 1) * (alpha0 + 2))
    for moment, true in ((as_64, M2), (as_66, M3)):
        assert np.allclose(moment, true, atol=1e-12) == (alpha0 == 1)
    # (68) has minus signs within its braces as well: with them it never holds.
    B1 = np.multiply.outer(pairs, m)
    signs = 2 * B1 - spread(pairs, m)
    moment = triples - signs / (alpha0 + 2) + c * cube(m)
    assert not np.allclose(moment, M3, atol=1e-3)


def moved(others, first, second, alpha0):
    """Differences of M2 and M3 between neighbours, times the number of documents."""
    n = len(others) + 1
    pairs = zip(
        u_statistics([*others, first], alpha0), u_statistics([*others, second], alpha0), strict=True
    )
    return [n * (x - y) for x, y in pairs]


def printed_bounds(alpha0, n):
    """G.1 and G.2, times the number of documents."""
    a, b, c = constants(alpha0)
    return 2 + 4 * a, 2 + 4 * abs(b) + 6 * c * (n - 1) / (n - 2)


PURE = 3 * np.eye(5)


def test_l1_bound_of_the_third_moment_counts_one_term_of_three():
    alpha0 = 1.0
    _, b, c = constants(alpha0)
    # Documents of one word each, all words different, four documents.
    dM2, dM3 = moved(PURE[2:5], PURE[0], PURE[1], alpha0)
    assert np.abs(dM3).sum() == pytest.approx(2 + 12 * abs(b) + 6 * c)
    pairs, triples = printed_bounds(alpha0, 4)
    # That of the second moment is attained as printed, and holds.
    assert np.abs(dM2).sum() == pytest.approx(pairs)
    assert np.abs(dM3).sum() > 1.14 * triples


def corpora(seed, n_pairs):
    """Others, and two documents to put beside them: pure ones often, as these move most."""
    yield [PURE[2]] * 4, PURE[0], PURE[1]
    rng = np.random.default_rng(seed)
    pool = np.vstack([PURE, PURE, all_documents(5)])
    for _ in range(n_pairs):
        chosen = pool[rng.integers(len(pool), size=rng.integers(4, 8))]
        if rng.random() < 0.5:
            chosen[3:] = chosen[2]
        yield chosen[2:], chosen[0], chosen[1]


@pytest.mark.parametrize("alpha0", [0.0, 0.2, 1.0, 8.0])
def test_no_corpus_exceeds_the_bounds_of_theorem_4_in_l2(alpha0, seed):
    a, b, c = constants(alpha0)
    largest = [0.0, 0.0]
    for others, first, second in corpora([seed, 1], 120):
        dM2, dM3 = moved(others, first, second, alpha0)
        n = len(others) + 1
        pairs, triples = printed_bounds(alpha0, n) if n > 2 else (math.inf, math.inf)
        norms = np.linalg.norm(dM2), np.linalg.norm(dM3)
        # The first is proved below 2 + 4 a; the second below sqrt(2) (1 + 6 |b| + 3 c) alone.
        assert norms[0] <= math.sqrt(2 + 4 * a**2) + 1e-9 <= pairs + 1e-9
        assert norms[1] <= min(triples, math.sqrt(2) * (1 + 6 * abs(b) + 3 * c)) + 1e-9
        assert np.abs(dM2).sum() <= pairs + 1e-9
        largest = np.maximum(largest, norms)
    # The first pair of the search attains what U-statistics can: bounds are tested where they are
    # tight.
    attained = [math.sqrt(2 + 4 * a**2), math.sqrt(2 + 6 * b**2 + 6 * (b + c) ** 2)]
    pure = moved(*next(corpora(0, 0)), alpha0)
    assert [np.linalg.norm(M) for M in pure] == pytest.approx(attained)
    assert largest[0] == pytest.approx(attained[0])
    assert largest[1] >= attained[1] - 1e-9


def unit(tensor):
    return tensor / np.linalg.norm(tensor)


def test_root_two_is_not_enough_for_counts_that_are_not_whole():
    # Six words half a time each, against a document of one of them; both of norm 1.
    halves = np.full(6, 0.5)
    pure = 3 * np.eye(6)[0]
    assert np.linalg.norm(unit(pair_moment(halves)) - unit(pair_moment(pure))) > 1.52
    first, second = np.array([2.0, 0.0, 1.0]), np.array([0.5, 0.5, 2.0])
    gap = np.linalg.norm(unit(triple_moment(first)) - unit(triple_moment(second)))
    assert gap > 1.55
    # Whole counts of the same size keep to it.
    whole = unit(triple_moment(first)) - unit(triple_moment(np.array([0.0, 1.0, 2.0])))
    assert np.linalg.norm(whole) <= math.sqrt(2)
