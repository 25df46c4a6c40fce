"""Secret decisions that are no noise, from given words: every bit of them has its place."""

from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from privrank.privacy import draws


class Given:
    """A generator that hands out what it was given."""

    def __init__(self, *values):
        self.values = list(values)

    def random(self):
        return self.values.pop(0)

    def integers(self, *_, size=None, dtype=None):
        return np.array(self.values.pop(0), dtype=dtype).reshape(size)


@pytest.fixture
def urandom(monkeypatch):
    """What the operating system gives is given here."""

    def given(*parts):
        left = [bytes(part) for part in parts]

        def take(number):
            part = left.pop(0)
            assert len(part) == number
            return part

        monkeypatch.setattr(draws, "os", SimpleNamespace(urandom=take))
        return left

    return given


def test_a_bit_is_one_below_its_probability_alone(monkeypatch):
    cases = ((0.0, 0.0, 0), (0.0, 2.0**-53, 1), (0.5, 0.5, 0), (0.5 - 2.0**-53, 0.5, 1))
    for uniform, probability, bit in cases:
        assert draws.draw_bit(probability, Given(uniform)) == bit
        system = SimpleNamespace(SystemRandom=partial(Given, uniform))
        monkeypatch.setattr(draws, "random", system)
        assert draws.draw_bit(probability, None) == bit


def test_secret_uniform_numbers_are_the_upper_bits_of_words(urandom):
    words = np.array([0, 2**11, 2**64 - 1, 2**63, 2**12 - 1, 3 * 2**62], dtype=np.uint64)
    urandom(words.tobytes())
    found = draws.draw_uniforms(2, 3, None)
    expected = [[0.0, 2.0**-53, 1 - 2.0**-53], [0.5, 2.0**-53, 0.75]]
    assert found.tolist() == expected
    seeded = draws.draw_uniforms(2, 3, np.random.default_rng(1))
    assert seeded.shape == (2, 3) and (seeded == np.random.default_rng(1).random((2, 3))).all()


def test_a_key_has_128_bits(urandom):
    rng = np.random.default_rng(1)
    keys = np.array([draws.draw_key(rng) for _ in range(200)])
    assert keys.shape == (200, 2) and keys.dtype == np.uint64
    assert np.bitwise_or.reduce(keys.ravel()) == 2**64 - 1
    assert np.bitwise_and.reduce(keys.ravel()) == 0
    assert len(np.unique(keys)) == 400
    urandom(bytes(range(16)))
    assert draws.draw_key(None).tobytes() == bytes(range(16))


@pytest.mark.parametrize("secret", [True, False])
def test_an_order_of_equal_keys_is_drawn_again(secret, urandom):
    first = np.array([[5, 5, 1], [9, 2, 2**64 - 1], [7, 4, 4]], dtype=np.uint64)
    again = np.array([[2**63, 3, 2], [1, 2, 3]], dtype=np.uint64)
    left = urandom(first.tobytes(), again.tobytes()) if secret else [1]
    rng = None if secret else Given(first, again)
    assert draws.draw_orders(3, 3, rng).tolist() == [[2, 1, 0], [1, 0, 2], [0, 1, 2]]
    assert (left if secret else rng.values) == []


def test_a_seeded_shuffle_takes_nothing_from_the_system(urandom):
    urandom()
    once, again = (draws.draw_shuffles(40, 5, np.random.default_rng(3)) for _ in range(2))
    assert (once == again).all() and (np.sort(once, axis=1) == np.arange(5)).all()
    assert len({tuple(row) for row in once.tolist()}) > 20
    assert draws.draw_shuffles(1, draws.LARGEST_SHUFFLE, np.random.default_rng(3)).shape[1] == 2**16
    with pytest.raises(ValueError, match="at most 65,536 elements"):
        draws.draw_shuffles(1, 2**16 + 1, np.random.default_rng(3))


def test_a_secret_shuffle_takes_a_word_per_element_and_draws_unfair_rows_again(monkeypatch):
    taken, honest = [], draws.os.urandom

    def counted(number):
        taken.append(number)
        return bytes(number) if len(taken) == 1 else honest(number)

    monkeypatch.setattr(draws, "os", SimpleNamespace(urandom=counted))
    shuffles = draws.draw_shuffles(30, 4, None)
    assert (np.sort(shuffles, axis=1) == np.arange(4)).all()
    assert taken[0] == 4 * 30 * 4 and all(number % 16 == 0 for number in taken)


def test_a_secret_generator_has_384_bits_of_the_system(urandom):
    words = np.array([11, 2**63 + 5, 1, 2, 3, 2**63 + 4], dtype=np.uint64)
    urandom(words.tobytes())
    state = draws.secret_generator().bit_generator.state["state"]
    assert state["key"].tolist() == words[:2].tolist()
    assert state["counter"].tolist() == words[2:].tolist()


def test_a_secret_permutation_sorts_words_of_the_system(urandom):
    equal, distinct = np.array([[5, 1, 5, 2], [2**63 + 5, 2**63, 11, 7]], dtype=np.uint64)
    left = urandom(equal.tobytes(), distinct.tobytes())
    assert draws.draw_permutation(4, None) == (3, 2, 1, 0)
    assert not left  # equal words are drawn again
    assert sorted(draws.draw_permutation(4, np.random.default_rng(0))) == [0, 1, 2, 3]
