"""Runs BFCL's simulated programs and its conversation checker from the package's wheel, in a separate process.

    python bfcl_worker.py WHEEL         one line of JSON in, one line of JSON out
    {"entry": {…}}                      a task as the data has it                                -> {}
    {"calls": ["cd(folder='a')"]}       runs calls                                               -> {"results": ["…"]}
    {"check": [[["cd(folder='a')"]]], "truth": [["cd(folder='a')"]]}
                                        judges turns of steps of calls                           -> {"error": ""}

BFCL evaluates calls as Python. They are written by `bfcl_talks.written`, from names and literals only.
"""

import json
import sys
from itertools import count
from typing import Any


def main() -> None:
    """Answer until the input is closed."""
    sys.path.insert(0, sys.argv[1])
    from bfcl_eval.eval_checker.multi_turn_eval import (  # noqa: PLC0415 # it is in the wheel
        multi_turn_checker,
        multi_turn_utils,
    )

    answers, sys.stdout = sys.stdout, sys.stderr  # keep the programs' own output out of the answers
    entry: dict[str, Any] = {}
    numbers = count()
    for line in sys.stdin:
        asked = json.loads(line)
        told: dict[str, Any] = {}
        if "entry" in asked:
            entry = asked["entry"]
        elif "calls" in asked:
            results, _ = multi_turn_utils.execute_multi_turn_func_call(
                asked["calls"], entry["initial_config"], entry["involved_classes"], "played", entry["id"]
            )
            told = {"results": results}
        else:
            # BFCL caches instances by the model's name: each check needs a unique name to start afresh.
            verdict = multi_turn_checker.multi_turn_checker(
                asked["check"], asked["truth"], entry, "multi_turn_base", f"checked{next(numbers)}"
            )
            told = {"error": "" if verdict["valid"] else verdict["error_message"]}
        answers.write(json.dumps(told) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
