"""Random changes of texts, JSON and bytes; the same seed gives the same change."""

from __future__ import annotations

import json
import random
import re
from typing import Any

_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_FOREIGN = (
    *("", "0", "-1", "1e308", "N", "real", "vector[0]", "reject(1);", "target", "~", "//", "/*"),
    *("{", "}", ";", "[", "]", "(", ")", "'", '"', "é", "\0", "#include x", "class", "1 / 0"),
    *("while (1) {}", "print(1);", "complex", "array[3]", "negative_infinity()", "not_a_number()"),
)
_STRANGE: tuple[Any, ...] = (
    *(None, True, "", "x", [], {}, [[]], [[1], [1, 2]], -1, 0, 1, 1.5, 1e308, 10**30, "NaN", "Inf"),
    *(float("nan"), float("inf"), {"1": 2}, ["a"], [None], [1, [2]], "é" * 5),
)


def changed_text(text: str, rng: random.Random) -> str:
    """Delete, repeat, swap or replace a few tokens of a program."""
    tokens = _TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 5))):
        at = rng.randrange(len(tokens))
        match rng.randrange(5):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] *= 2
            case 2:
                other = rng.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3:
                tokens[at] = rng.choice(_FOREIGN)
            case _:
                tokens[at] = rng.choice(tokens)
    return "".join(tokens)


def changed_data(data: dict[str, Any], rng: random.Random) -> str:
    """Replace, drop, nest or resize a value, or break the text of the JSON."""
    made = json.loads(json.dumps(data)) or {"x": 1}
    name = rng.choice(sorted(made))
    match rng.randrange(5):
        case 0:
            made[name] = rng.choice(_STRANGE)
        case 1:
            del made[name]
        case 2:
            made[name] = [made[name]]
        case 3:
            value = made[name]
            if isinstance(value, list) and value:
                value[rng.randrange(len(value))] = rng.choice(_STRANGE)
            else:
                made[name] = [value] * rng.randrange(4)
        case _:
            text = json.dumps(made)
            at = rng.randrange(len(text))
            return (
                text[:at] + rng.choice(("", '"', "{", "]", ",", "NaN", "\\", "1e999")) + text[at:]
            )
    return json.dumps(made)


def changed_bytes(content: bytes, rng: random.Random) -> bytes:
    """Flip bytes, cut, insert, empty or replace."""
    made = bytearray(content)
    match rng.randrange(6):
        case 0:
            for _ in range(rng.choice((1, 4, 64))):
                if made:
                    made[rng.randrange(len(made))] = rng.randrange(256)
        case 1:
            del made[rng.randrange(len(made) + 1) :]
        case 2:
            at = rng.randrange(len(made) + 1)
            made[at:at] = rng.randbytes(rng.choice((1, 100)))
        case 3:
            made.clear()
        case 4:
            at = rng.randrange(len(made) + 1)
            made[at : at + 256] = bytes(256)
        case _:
            made = bytearray(rng.randbytes(200))
    return bytes(made)
