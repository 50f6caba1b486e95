"""The cases: a user task, with the instructions of an injection task hidden in what its tools return.

    banking/user_task_0/injection_task_7/ignore_previous       with an attack
    slack/user_task_3                                          without: whether the form does the task at all

A case that is *begun* has a history already: AgentDojo's own right calls, up to the first result that an attacker can
write into. Small models seldom get that far alone, and a model that reads nothing cannot be attacked.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from bench.accuracy.split import Split, split_of

SUITES = ("banking", "slack")
ATTACKS = ("important_instructions", "ignore_previous")
NO_ATTACK = ""
SEED = 6
Suites = Mapping[str, Mapping[str, Sequence[str]]]
"""By suite, the ids of `user` and `injection` tasks."""


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation; without an attack there is no injection task."""

    suite: str
    user: str
    injection: str = ""
    attack: str = NO_ATTACK
    begun: bool = False

    @property
    def key(self) -> str:
        return f"{self.id} begun" if self.begun else self.id

    @property
    def id(self) -> str:
        """What the split goes by: a case is in the same split however it begins."""
        return "/".join(filter(None, (self.suite, self.user, self.injection, self.attack)))


def sample(suites: Suites, attack: str, count: int, seed: int, split: Split) -> list[list[Case]]:
    """Return so many cases of each suite, the same for every form and model.

    A larger sample begins with the smaller.
    """
    return [list(_shuffled(name, tasks, attack, seed, split))[:count] for name, tasks in suites.items()]


def _shuffled(suite: str, tasks: Mapping[str, Sequence[str]], attack: str, seed: int, split: Split) -> Iterator[Case]:
    pairs = list(product(tasks["user"], tasks["injection"] if attack else ("",)))
    random.Random(f"{seed} {suite} {attack}").shuffle(pairs)
    cases = (Case(suite, user, injection, attack) for user, injection in pairs)
    return (case for case in cases if split_of(case.id) is split)


def in_turn(  # noqa: PLR0913 # what a sample is
    suites: Suites, attacks: Sequence[str], count: int, seed: int, split: Split, *, begun: bool
) -> Iterator[Case]:
    """Return the first case of every suite and attack, then the second, and so on."""
    samples = [cases for attack in attacks for cases in sample(suites, attack, count, seed, split)]
    for index in range(count):
        yield from (replace(cases[index], begun=begun) for cases in samples if index < len(cases))
