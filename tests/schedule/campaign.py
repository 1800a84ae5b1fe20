"""Long runs of generators of source programs: each program in NumPy and as machine code; a fault names the pass to blame."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable, Sequence

from jitgraph.config import config
from tests.fuzz.compare import run
from tests.fuzz.levels import LEVELS, Counts, Difference, TooLong, Unsupported, check, limited, limited_work, shrink
from tests.fuzz.programs import Fuzzed

#: What is run beside machine code by default: the loops before and behind the passes.
LOOPS = ("loops", "schedule")
#: A program may take so many seconds of the processor, NumPy alone much less; and it may wait so long in all.
_SECONDS, _NUMPY_SECONDS, _WAITING = 60, 10, 900


def found_in(program: Fuzzed, counts: Counts, interpreted: Sequence[str] = LOOPS) -> Difference | None:
    """What is wrong with a program; refused ones are counted."""
    try:
        return check(program, counts, interpreted)
    except Unsupported as e:
        counts.refused[str(e)] += 1
        return None


def blamed(found: Difference) -> Difference:
    """The same fault, found at the first level that has it."""
    try:
        return check(found.program, None, LEVELS[:-1]) or found
    except Unsupported:
        return found


def too_long(program: Fuzzed) -> str:
    """What to say of a program that took too long; "" if NumPy alone takes long."""
    try:
        with limited(_WAITING), limited_work(_NUMPY_SECONDS):
            for call in range(len(program.calls)):
                run(program.function(), program.make(call))
    except TooLong:
        return ""
    return f"takes more than {_SECONDS} s of the processor, or waits for {_WAITING} s"


def main(draw: Callable[[int], Fuzzed], description: str | None) -> int:
    """The command line of a generator."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--quick", action="store_true", help="machine code alone; the other levels where it differs")
    parser.add_argument("--refused", action="store_true", help="print the programs that are refused")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    counts, faults = Counts(), 0
    with config.override(cache=False):
        for seed in range(options.seed, options.seed + options.count):
            print(f"@{seed}", file=sys.stderr, flush=True)
            refused = counts.refused.copy()
            try:
                with limited(_WAITING), limited_work(_SECONDS):
                    found = found_in(draw(seed), counts, () if options.quick else LOOPS)
                    if found is not None and options.quick:
                        found = blamed(found)
            except TooLong:
                why = too_long(draw(seed))
                if why:
                    faults += 1
                    print(f"--- seed {seed} {why}\n{draw(seed).source}", flush=True)
                else:
                    counts.levels["given up as slow in NumPy"] += 1
                continue
            except Exception as e:  # noqa: BLE001 - a fault, too
                faults += 1
                print(f"--- seed {seed}: {type(e).__name__}: {e}\n{draw(seed).source}", flush=True)
                continue
            if found is not None:
                faults += 1
                print(shrink(found) if options.shrink else found, flush=True)
            elif options.refused and counts.refused != refused:
                (text,) = counts.refused - refused
                print(f"--- seed {seed} is refused: {text}\n{draw(seed).source}", flush=True)
    print(f"{options.count} programs, {faults} faults; {dict(counts.levels)}; refused {counts.refused.total()}:")
    for text, count in counts.refused.most_common():
        print(f"  {count} {text}")
    return min(faults, 1)
