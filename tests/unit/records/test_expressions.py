from __future__ import annotations

from functions.records.database import Absent, Appended, Below, Either, Equals, Every, NextNumber, Present, Update
from functions.records.expressions import Expression


def test_every_name_and_value_is_a_placeholder_so_that_no_word_is_reserved() -> None:
    expression = Expression()

    text = expression.condition(Every((Absent("owner"), Either((Present("next"), Below("next.until", 5))))))

    assert text == ("(attribute_not_exists(#owner) AND (attribute_exists(#next) OR #next.#until < :v0))")
    assert expression.placeholders() == {
        "ExpressionAttributeNames": {"#owner": "owner", "#next": "next", "#until": "until"},
        "ExpressionAttributeValues": {":v0": {"N": "5"}},
    }


def test_one_clause_gets_no_parentheses_which_dynamodb_would_call_redundant() -> None:
    assert Expression().condition(Every((Either((Absent("a"),)),))) == "attribute_not_exists(#a)"


def test_a_condition_and_an_update_of_one_request_share_their_placeholders() -> None:
    expression = Expression()
    update = Update(
        set={"token": NextNumber(7), "lost": Appended(("a",)), "owner": "b"},
        remove=("ttl", "next"),
        add={"triggers": frozenset({"r"})},
    )

    assert expression.update(update) == (
        "SET #token = if_not_exists(#token, :v0) + :v1, "
        "#lost = list_append(if_not_exists(#lost, :v2), :v3), #owner = :v4 "
        "REMOVE #ttl, #next ADD #triggers :v5"
    )
    assert expression.condition(Equals("owner", "x")) == "#owner = :v6"
    assert len(expression.values) == 7


def test_empty_placeholders_are_left_out_since_dynamodb_refuses_them() -> None:
    expression = Expression()
    assert expression.placeholders() == {}

    expression.condition(Absent("a"))

    assert expression.placeholders() == {"ExpressionAttributeNames": {"#a": "a"}}
