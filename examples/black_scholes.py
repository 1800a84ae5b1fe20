"""Black-Scholes prices of a million options, and their Greeks by differentiating the price."""

import numpy as np
from common import compare

import jitgraph as jg


def normal_cdf(x):
    return 0.5 * (1.0 + jg.erf(x * np.sqrt(0.5)))


def call_price(spot, strike, time, rate, volatility):
    """Prices of European calls; all arguments f64[n] but the scalar `rate`."""
    root = volatility * np.sqrt(time)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * time) / root
    return spot * normal_cdf(d1) - strike * np.exp(-rate * time) * normal_cdf(d1 - root)


def total_price(spot, strike, time, rate, volatility):
    return call_price(spot, strike, time, rate, volatility).sum()


def greeks(spot, strike, time, rate, volatility):
    """(delta, theta, vega) of each option: prices depend on their own row only, so the gradient of the sum is theirs."""
    return jg.grad(total_price, argnums=(0, 2, 4))(spot, strike, time, rate, volatility)


def options(n, seed=7):
    rng = np.random.default_rng(seed)
    return (
        rng.uniform(10, 50, n),
        rng.uniform(10, 50, n),
        rng.uniform(0.2, 2.0, n),
        0.03,
        rng.uniform(0.1, 0.6, n),
    )


def main():
    args = options(1_000_000)
    compare("Black-Scholes, a million options", call_price, args, tolerance=1e-13)
    compare("Greeks by jg.grad, a million options", greeks, args, tolerance=1e-12, show_ir=False)


if __name__ == "__main__":
    main()
