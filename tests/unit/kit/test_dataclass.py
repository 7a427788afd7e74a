"""The kit's dataclass is the standard one in all that can be seen of it, and is compared with it here."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
import pprint
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from functools import cached_property
from typing import Any, ClassVar

import pytest
from rich.pretty import pretty_repr

from functions.kit.dataclass import dataclass


def makers() -> Any:
    return pytest.mark.parametrize("make", [dataclass, dataclasses.dataclass], ids=["kit", "standard"])


def a_pair(make: Any) -> Any:
    @make(frozen=True)
    class Pair:
        kind: ClassVar[str] = "pair"
        left: int
        right: list[int] = field(default_factory=list)
        shown: str = field(default="", compare=False)
        hidden: str = field(default="", repr=False)

        @cached_property
        def total(self) -> int:
            return self.left + sum(self.right)

    return Pair


@makers()
def test_fields_have_their_values_and_a_factory_makes_one_for_each(make: Any) -> None:
    kind = a_pair(make)
    one, other = kind(1), kind(2)
    one.right.append(5)
    assert (one.left, one.right, other.right, one.total) == (1, [5], [], 6)
    assert kind(3, [4], "s", "h") == kind(left=3, right=[4], shown="s", hidden="h")
    assert asdict(one) == {"left": 1, "right": [5], "shown": "", "hidden": ""}
    assert [part.name for part in fields(kind)] == ["left", "right", "shown", "hidden"]
    assert replace(one, left=9).left == 9


@makers()
def test_equal_are_values_of_one_class_by_the_fields_that_are_compared(make: Any) -> None:
    kind, namesake = a_pair(make), a_pair(make)
    one = kind(1, [2], "x")
    assert one == kind(1, [2], "y")
    assert one.total == 3  # kept beside the fields, and no part of the value
    assert one == kind(1, [2])
    assert one != kind(1, [3])
    assert one != namesake(1, [2])
    assert one != (1, [2])
    assert kind.__eq__(one, 1) is NotImplemented


@makers()
def test_nothing_of_a_frozen_one_can_be_set_or_deleted(make: Any) -> None:
    one = a_pair(make)(1)
    for name in ("left", "kind", "new"):
        with pytest.raises(FrozenInstanceError, match=f"cannot assign to field '{name}'"):
            setattr(one, name, 2)
        with pytest.raises(FrozenInstanceError, match=f"cannot delete field '{name}'"):
            delattr(one, name)
    assert one == a_pair_like(one)


def a_pair_like(one: Any) -> Any:
    return type(one)(one.left, one.right)


@makers()
def test_a_frozen_one_has_the_hash_of_its_value(make: Any) -> None:
    @make(frozen=True, kw_only=True)
    class Named:
        name: str
        note: str = field(default="", compare=False)

    assert len({Named(name="a"), Named(name="a", note="n"), Named(name="b")}) == 2
    with pytest.raises(TypeError, match="unhashable type: 'list'"):
        hash(a_pair(make)(1))


@makers()
def test_one_that_is_not_frozen_can_be_set_and_has_no_hash(make: Any) -> None:
    @make(kw_only=True)
    class Count:
        seen: int = 0

    one = Count()
    one.seen += 2
    assert one == Count(seen=2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(one)


@makers()
def test_what_it_says_of_itself(make: Any) -> None:
    kind = a_pair(make)
    one = kind(1, ["é"], "s", "secret")
    assert repr(one) == f"{kind.__qualname__}(left=1, right=['é'], shown='s')"
    one.right.append(one)
    assert repr(one) == f"{kind.__qualname__}(left=1, right=['é', ...], shown='s')"
    assert list(inspect.signature(kind).parameters) == ["left", "right", "shown", "hidden"]


@makers()
@pytest.mark.parametrize("given", [{}, {"left": 1, "other": 2}])
def test_an_argument_that_is_missing_or_unknown_is_told_with_the_class(make: Any, given: Mapping[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"Pair\.__init__\(\) (missing|got an unexpected)"):
        a_pair(make)(**given)


@makers()
def test_keyword_fields_are_given_by_name(make: Any) -> None:
    @make(frozen=True, kw_only=True)
    class Named:
        name: str = "n"
        size: int

    assert Named(size=1) == Named(name="n", size=1)
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        Named(1)


@makers()
def test_a_class_keeps_the_methods_that_it_has(make: Any) -> None:
    @make(frozen=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    @make(frozen=True)
    class Hashed:
        name: str

        def __hash__(self) -> int:
            return 7

    assert repr(Own("a")) == "own"
    assert Own("a") == Own("b")
    assert len({hash(Own("a")), hash(Own("a")), hash(Own("b"))}) == 2
    assert (hash(Hashed("a")), Hashed("a") == Hashed("b")) == (7, False)


@makers()
def test_a_class_may_go_on_from_another(make: Any) -> None:
    @make(frozen=True, kw_only=True)
    class Base:
        stage: str = "local"

    @make(frozen=True, kw_only=True)
    class Settings(Base):
        queue: str

        def __post_init__(self) -> None:
            if not self.queue:
                raise ValueError("no queue")

    one = Settings(queue="q")
    assert (one.stage, one.queue, one == Settings(queue="q", stage="local")) == ("local", "q", True)
    assert one != Base()
    assert len({one, Settings(queue="q")}) == 1
    with pytest.raises(ValueError, match="no queue"):
        Settings(queue="")


@makers()
def test_a_value_is_equal_to_itself_whatever_it_holds(make: Any) -> None:
    @make(frozen=True)
    class Share:
        part: float

    one = Share(math.nan)
    assert one.__eq__(one) is True


@makers()
def test_a_class_may_say_that_it_has_no_hash(make: Any) -> None:
    @make(frozen=True)
    class Unhashed:
        name: str
        __hash__ = None  # type: ignore[assignment]

    assert Unhashed("a") == Unhashed("a")
    with pytest.raises(TypeError, match="unhashable type"):
        hash(Unhashed("a"))


@makers()
def test_a_field_may_have_any_name(make: Any) -> None:
    kind = make(frozen=True)(type("Any", (), {"__annotations__": dict.fromkeys(NAMES, "int"), **FACTORIES}))
    one = kind(**{name: number for number, name in enumerate(NAMES)})
    assert [getattr(one, name) for name in NAMES] == list(range(len(NAMES)))
    assert [getattr(kind(0, 1), name) for name in NAMES[2:]] == [7] * len(FACTORIES)
    assert one != kind(0, 1)


NAMES = (
    "self",
    "cls",
    "made",
    "_made",
    "_MADE",
    "kept",
    "_kept",
    "_make_made",
    "_default_made",
    "compared",
    "_compared",
)
FACTORIES = {name: field(default_factory=lambda: 7) for name in NAMES[2:]}


@makers()
@pytest.mark.parametrize("name", ["__setattr__", "__delattr__"])
def test_a_frozen_one_cannot_have_its_own_way_of_setting(make: Any, name: str) -> None:
    with pytest.raises(TypeError, match=f"(Cannot overwrite attribute|is frozen and has) {name}"):
        make(frozen=True)(type("Thawed", (), {"__annotations__": {"left": "int"}, name: lambda *_: None}))


@makers()
def test_pytest_and_pprint_show_it_field_by_field(make: Any) -> None:
    kind = a_pair(make)
    with pytest.raises(AssertionError, match="Differing attributes"):
        assert kind(1) == kind(2)
    assert pprint.pformat(kind(1, [2] * 30), width=40).count("\n") > 10
    assert pretty_repr(kind(1, [2] * 30), max_width=40).count("\n") > 10


@makers()
def test_patterns_take_it_apart(make: Any) -> None:
    @make(frozen=True)
    class Below:
        path: str
        value: int

    match Below("next", 3):
        case Below(path, value):
            assert (path, value) == ("next", 3)
        case _:
            pytest.fail("it is one")


@dataclass(frozen=True, kw_only=True)
class Kept:
    names: tuple[str, ...]


def test_it_goes_through_pickle_and_copies() -> None:
    one = Kept(names=("a", "b"))
    assert pickle.loads(pickle.dumps(one)) == copy.copy(one) == copy.deepcopy(one) == one


def test_what_it_cannot_do_is_refused_where_the_class_is_made() -> None:
    with pytest.raises(TypeError, match=r"Odd\.made has init=False: use the standard library's dataclass"):

        @dataclass(frozen=True)
        class Odd:
            made: int = field(init=False, default=0)

    with pytest.raises(TypeError, match=r"Unhashed\.names has hash=False: use the standard library's dataclass"):

        @dataclass(frozen=True)
        class Unhashed:
            names: list[str] = field(hash=False, default_factory=list)

    with pytest.raises(ValueError, match="mutable default"):

        @dataclass(frozen=True)
        class Shared:
            names: list[str] = []  # noqa: RUF012 - the mistake itself


def test_whatever_asks_for_more_is_made_by_the_standard_one() -> None:
    @dataclass(frozen=True, order=True, slots=True)
    class Point:
        x: int

    assert Point(1) < Point(2)
    assert not hasattr(Point(1), "__dict__")
