"""Twice the input, about twice the time (P8), measured on a busy machine.

Other work on the machine only ever adds time: the best of several measurements of each size counts, interleaved so that
both see the same load. A function with quadratic cost fails however often it is tried.
"""

import gc
import time
from collections.abc import Callable
from typing import TypeVar

Input = TypeVar("Input")

BAR = 3.0
"""Quadratic cost gives 4. `just linear` measures alone, against the promised 2.5; here other tests share the caches."""
TRIES = 25


def growth(run: Callable[[Input], object], small: Input, large: Input) -> float:
    """Return how much more the large input costs; stops as soon as that is under the bar."""
    best_small = best_large = float("inf")
    for _ in range(TRIES):
        best_small = min(best_small, cost(run, small))
        best_large = min(best_large, cost(run, large))
        if best_large < BAR * max(best_small, 0.001):
            break
    return best_large / max(best_small, 0.001)


def cost(run: Callable[[Input], object], what: Input) -> float:
    """Return the processor time; what other tests left to the garbage collector does not count."""
    gc.collect()
    gc.disable()
    started = time.process_time()
    try:
        run(what)
    finally:
        gc.enable()
    return time.process_time() - started
