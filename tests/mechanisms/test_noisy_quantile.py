"""Quantiles of noisy statistics."""

from __future__ import annotations

import numpy as np
import pytest

from privrank.mechanisms.permutation import noisy_quantile


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("level", [0.005, 0.3, 0.9])
def test_a_noisy_statistic_exceeds_its_quantile_with_the_level(scale: float, level: float) -> None:
    rng = np.random.default_rng(1)
    draws = rng.normal(3.0, 2.0, 200)
    noisy = rng.choice(draws, 400_000) + rng.laplace(0.0, scale, 400_000)
    share = float(np.mean(noisy >= noisy_quantile(draws, level, scale)))
    assert abs(share - level) < 5 * np.sqrt(level * (1 - level) / 400_000)


def test_without_noise_it_is_the_quantile_of_the_draws() -> None:
    draws = np.arange(1.0, 101.0)
    assert noisy_quantile(draws, 0.05, 0.0) == 95.0
    assert noisy_quantile(draws, 0.05, 1e-9) == pytest.approx(95.0, abs=1e-6)


def test_under_much_noise_statistics_of_one_mean_have_one_quantile() -> None:
    rng = np.random.default_rng(2)
    narrow, wide = rng.normal(0.0, 1.0, 4000), rng.normal(0.0, 8.0, 4000)
    narrow -= narrow.mean()
    wide -= wide.mean()
    apart = noisy_quantile(wide, 0.025, 500.0) - noisy_quantile(narrow, 0.025, 500.0)
    assert 0 <= apart < 0.1
