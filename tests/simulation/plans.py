"""What one seed asks for: jobs, people, deployments, and how much goes wrong."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from functions.schedules.definitions import Catchup, Job

FAULTS_END_MS = 240_000
_OVERLAPS: tuple[Literal["queue", "skip", "allow", "cancel_running"], ...] = (
    "queue",
    "queue",
    "skip",
    "cancel_running",
)
_CALM = 0.06
_BEYOND = 0.06


@dataclass(frozen=True, kw_only=True)
class EffectPlan:
    """`find`: the job can ask the receiver what became of a call."""

    name: str
    repeatable: bool
    find: bool = False


@dataclass(frozen=True, kw_only=True)
class JobPlan:
    """What the job's function does: a pause before each effect, and `raises` at its end in the first attempts."""

    job: Job
    effects: tuple[EffectPlan, ...]
    pause_ms: int = 0
    raises: int = 0
    swallows: bool = False


@dataclass(frozen=True, kw_only=True)
class Rates:
    """How likely each fault is at a call where it can happen."""

    crash: float = 0.0
    answer: float = 0.0
    slow: float = 0.0
    freeze: float = 0.0
    queue: float = 0.0
    most: int = 0


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`act` are a person's doings, by the millisecond.  `answers`: somebody decides what is on hold.

    `skew_ms` is how far any clock may be from the true one.  `beyond`: further than the records allow for.
    `poison`: a message, a row and a definition that cannot be read.  Not `watched`: without sweep and monitor.
    """

    seed: int
    jobs: tuple[JobPlan, ...]
    deployed: tuple[JobPlan, ...] = ()
    deployed_at_ms: int | None = None
    pollers: int = 2
    batch: int = 1
    stays: float = 0.5
    rates: Rates = field(default_factory=Rates)
    skew_ms: int = 0
    beyond: bool = False
    acts: tuple[tuple[int, str, str], ...] = ()
    answers: bool = True
    poison: bool = False
    watched: bool = True

    @property
    def calm(self) -> bool:
        return self.rates.most == 0

    def effects_of(self, job: str) -> tuple[EffectPlan, ...]:
        return next((one.effects for one in (*self.jobs, *self.deployed) if one.job.name == job), ())

    def swallows(self, job: str) -> bool:
        return any(one.swallows for one in (*self.jobs, *self.deployed) if one.job.name == job)


def plan(seed: int) -> Plan:
    rng = Random(f"plan {seed}")
    jobs = _jobs(rng)
    calm = rng.random() < _CALM
    beyond = not calm and rng.random() < _BEYOND
    deployed_at = rng.randrange(20_000, 180_000) if rng.random() < 0.2 else None
    return Plan(
        seed=seed,
        jobs=jobs,
        deployed=_edited(rng, jobs) if deployed_at is not None else (),
        deployed_at_ms=deployed_at,
        pollers=rng.choice([1, 2, 2, 3]),
        batch=rng.choice([1, 1, 1, 2]),
        stays=rng.choice([0.0, 0.5, 0.8, 0.95]),
        rates=Rates() if calm else _rates(rng),
        skew_ms=20_000 if beyond else rng.choice([0, 500]),
        beyond=beyond,
        acts=_acts(rng, jobs),
        answers=rng.random() < 0.8,
        poison=not calm and rng.random() < 0.1,
    )


def _jobs(rng: Random) -> tuple[JobPlan, ...]:
    shape = rng.choice(["one", "one", "two slots", "two jobs", "shared lock", "shared lock", "three"])
    slots = {"two slots": "0,1", "three": "0,1,2"}.get(shape, "0")
    lock = "ledger" if shape == "shared lock" else ""
    names = ["charge", "mail"] if shape in {"two jobs", "shared lock"} else ["charge"]
    return tuple(_job(rng, name, f"{slots} 6 * * *", lock) for name in names)


def _job(rng: Random, name: str, schedule: str, lock: str) -> JobPlan:
    job = Job(
        name=name,
        schedules=(schedule,),
        run=f"{name}:main",
        owner="ops",
        lease_s=15,
        attempts=rng.choice([1, 2, 3, 3, 5]),
        backoff_s=1,
        backoff_max_s=5,
        max_duration_s=rng.choice([30, 60, 60]),
        start_grace_s=90,
        complete_within_s=200,
        overlap=rng.choice(_OVERLAPS if lock else (*_OVERLAPS, "allow")),
        start_deadline_s=rng.choice([None, None, None, 30]),
        lock=lock,
        catchup=Catchup(policy=rng.choice(["latest", "all", "none"])),
        severity=rng.choice(["page", "ticket"]),
    )
    count = rng.choice([0, 1, 1, 2, 2, 3])
    effects = tuple(
        EffectPlan(name=f"effect-{place}", repeatable=rng.random() < 0.6, find=rng.random() < 0.3)
        for place in range(count)
    )
    return JobPlan(
        job=job,
        effects=effects,
        pause_ms=rng.choice([0, 200, 3_000, 6_000]),
        raises=rng.choice([0, 0, 0, 0, 1, 9]),
        swallows=rng.random() < 0.1,
    )


def _edited(rng: Random, jobs: tuple[JobPlan, ...]) -> tuple[JobPlan, ...]:
    """A deployment: a job comes, goes, or gets other slots.  What a job's name does stays the same."""
    added = _job(rng, "report", "1,2 6 * * *", "")
    match rng.choice(["added", "gone", "edited"]):
        case "added":
            return (*jobs, added)
        case "gone":
            return (*jobs[1:], added)
        case _:
            first = replace(jobs[0], job=replace(jobs[0].job, schedules=("0,2 6 * * *",)))
            return (first, *jobs[1:])


def _rates(rng: Random) -> Rates:
    def some() -> float:
        return rng.choice([0.0, 0.01, 0.03, 0.08])

    return Rates(
        crash=some(), answer=some(), slow=some(), freeze=some(), queue=some() * 2, most=rng.choice([2, 4, 6, 9, 14])
    )


def _acts(rng: Random, jobs: tuple[JobPlan, ...]) -> tuple[tuple[int, str, str], ...]:
    """Sorted by time."""
    acts: list[tuple[int, str, str]] = []
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        at, name = rng.randrange(5_000, 150_000), rng.choice(jobs).job.name
        act = rng.choice(["trigger", "trigger by key", "trigger by key", "pause", "cancel", "review"])
        acts.append((at, act, name))
        if act == "pause":
            acts.append((at + rng.randrange(5_000, 90_000), "resume", name))
    return tuple(sorted(acts))
