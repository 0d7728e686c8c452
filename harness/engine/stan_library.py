"""Stan models in a shared library that has BridgeStan's C functions, called through ctypes.

stanli's library has them, and so has a library that is compiled from a program with Stan's own
headers (:mod:`harness.engine.program_library`).  Code that evaluates densities needs nothing but a
:class:`StanLibrary`.

References
----------
Roualdes, E., Ward, B., Carpenter, B., Seyboldt, A. and Axen, S. (2023). BridgeStan: efficient
in-memory access to the methods of a Stan model. Journal of Open Source Software 8, 5236.
"""

from __future__ import annotations

import ctypes
import re
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from harness.arrays import FloatArray
from harness.engine.memory import within_memory
from harness.errors import DataError, NotEnoughMemory

_POINTER = ctypes.c_void_p
_INT, _BOOL = ctypes.c_int, ctypes.c_bool
DATA_SEED = 1
"""Seed of random numbers in ``transformed data``, unless another one is given."""
RENAMED = "_stan_"
"""What stanli puts before a name that is a word of C++; no name in Stan begins like this."""


class Variable(NamedTuple):
    """A variable of a program and where it lies among all the values that the program writes."""

    shape: tuple[int, ...]
    columns: slice


@dataclass(frozen=True)
class StanLibrary:
    """The C functions of a library, each as BridgeStan declares it.

    Attributes
    ----------
    gradient
        ``bs_log_density_gradient``; while it runs, other threads of Python run too.
    gradient_alone
        The same function, but other threads of Python wait while it runs: a call takes less time,
        and does not have to wait for Python's lock afterwards.
    gradient_address
        Address of that function, for code that is not Python.
    value_address
        Address of ``bs_log_density``, which takes no gradient; None if the library lacks it.
    """

    construct: Callable[..., int | None]
    destruct: Callable[..., None]
    free_message: Callable[..., None]
    names: Callable[..., bytes]
    dimension: Callable[..., int]
    gradient: Callable[..., int]
    gradient_alone: Callable[..., int]
    gradient_address: int
    value_address: int | None
    constrain: Callable[..., int]
    unconstrain: Callable[..., int]
    make_random: Callable[..., int]
    end_random: Callable[..., None]


@cache
def load_library(path: Path) -> StanLibrary:
    """Load a library, once per process."""
    library = ctypes.CDLL(str(path))

    def address(name: str) -> int:
        return ctypes.cast(getattr(library, name), _POINTER).value or 0

    def function(name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
        return ctypes.CFUNCTYPE(result, *arguments)(address(name))

    evaluate = (_INT, _POINTER, _BOOL, _BOOL, _POINTER, _POINTER, _POINTER, _POINTER)
    at = address("bs_log_density_gradient")
    # Stan's own headers need derivatives to leave out constants, so model.cpp has no such function.
    value_at = address("bs_log_density") if hasattr(library, "bs_log_density") else None
    return StanLibrary(
        construct=function(
            "bs_model_construct", _POINTER, ctypes.c_char_p, ctypes.c_uint, _POINTER
        ),
        destruct=function("bs_model_destruct", None, _POINTER),
        free_message=function("bs_free_error_msg", None, _POINTER),
        names=function("bs_param_names", ctypes.c_char_p, _POINTER, _BOOL, _BOOL),
        dimension=function("bs_param_unc_num", _INT, _POINTER),
        gradient=ctypes.CFUNCTYPE(*evaluate)(at),
        gradient_alone=ctypes.PYFUNCTYPE(*evaluate)(at),
        gradient_address=at,
        value_address=value_at,
        constrain=function(
            "bs_param_constrain",
            *(_INT, _POINTER, _BOOL, _BOOL, _POINTER, _POINTER, _POINTER, _POINTER),
        ),
        unconstrain=function("bs_param_unconstrain", _INT, _POINTER, _POINTER, _POINTER, _POINTER),
        make_random=function("bs_rng_construct", _POINTER, ctypes.c_uint, _POINTER),
        end_random=function("bs_rng_destruct", None, _POINTER),
    )


def lacks_memory(message: str) -> bool:
    """Whether a library says that an allocation has failed."""
    return "bad_alloc" in message


def needs_memory(most: float) -> str:
    """Say that a program with its data needs more than so many bytes."""
    return f"with these data it needs more memory than the {most / 1e9:.1f} GB that are free"


class Message:
    """Holds the message of a C function, which the caller has to free."""

    def __init__(self, library: StanLibrary) -> None:
        self._library = library
        self._text = _POINTER()
        self.room = ctypes.addressof(self._text)

    def take(self) -> str:
        """Return the message and free it; an empty one if there is none."""
        if not self._text.value:
            return ""
        said = ctypes.string_at(self._text.value).decode(errors="replace").strip()
        self._library.free_message(self._text)
        self._text.value = None
        return said


def address_of(array: FloatArray) -> int:
    """Return where an array's numbers begin, usually in a third of the time of ``ctypes.data``."""
    try:
        return ctypes.addressof(ctypes.c_double.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):  # the array is read-only or empty
        return int(array.ctypes.data)


@dataclass(frozen=True)
class StanSource:
    """A program with its data, from which instances are made.

    Attributes
    ----------
    library
        Library that evaluates it.
    document
        Its data as the library's ``bs_model_construct`` expects them.
    name
        Name of the program, for messages.
    engine
        ``stanli``, or ``cmdstan`` if the library is compiled from the program.
    data_seed
        Seed of random numbers in ``transformed data``.
    """

    library: StanLibrary
    document: bytes
    name: str
    engine: Literal["cmdstan", "stanli"]
    data_seed: int = DATA_SEED

    def instance(self) -> StanInstance:
        """Return a new instance.

        Raises
        ------
        NotEnoughMemory
            If they need more memory than there is.
        DataError
            If the program or its data are refused; the message is the library's own.
        """
        return StanInstance(self)


class StanInstance:
    """A program with its data, ready to be evaluated by one thread at a time.

    Parameters
    ----------
    source
        The program with its data.

    Raises
    ------
    NotEnoughMemory, DataError
        For the same reasons as in :meth:`StanSource.instance`.
    """

    def __init__(self, source: StanSource) -> None:
        library = source.library
        message = Message(library)
        with within_memory() as most:
            pointer = library.construct(source.document, source.data_seed, message.room)
        if not pointer:
            said = message.take()
            if lacks_memory(said):
                raise NotEnoughMemory(f"{source.name}: {needs_memory(most)}")
            raise DataError(f"{source.name}: {said}")
        self.source = source
        self.library = library
        self.pointer = pointer
        weakref.finalize(self, library.destruct, pointer)
        self.dimension = library.dimension(pointer)

    def at(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the log density and its gradient at a point (D,), as the program computes them.

        Raises
        ------
        RuntimeError
            If the program rejects the point; the message is Stan's.
        """
        value, gradient, message = np.empty(1), np.empty(self.dimension), Message(self.library)
        where = address_of(point), address_of(value), address_of(gradient)
        if self.library.gradient(self.pointer, True, True, *where, message.room):
            raise RuntimeError(message.take())
        return float(value[0]), gradient

    @property
    def renamed(self) -> list[str]:
        """Parameters with values that the library knows by another name: stanli's words of C++."""
        listed = self.library.names(self.pointer, False, False).decode().split(",")
        names = (each.split(".")[0] for each in listed if each.startswith(RENAMED))
        return list(dict.fromkeys(each.removeprefix(RENAMED) for each in names))

    def variables(
        self, *, transformed: bool = False, generated: bool = False
    ) -> dict[str, Variable]:
        """Return parameters by name and, if wanted, what else the program writes, in its order.

        Variables without values (a vector of size 0) are left out.
        """
        listed = self.library.names(self.pointer, transformed, generated).decode()
        columns: dict[str, list[tuple[int, ...]]] = {}
        for column in filter(None, listed.split(",")):
            name, index = re.fullmatch(r"(.+?)((?:\.\d+)*)", column).groups()  # type: ignore[union-attr]
            name = name.removeprefix(RENAMED)
            columns.setdefault(name, []).append(tuple(map(int, index.split(".")[1:])))
        variables, start = {}, 0
        for name, indices in columns.items():
            # Columns are in order, so the last index is the largest in every place.
            variables[name] = Variable(indices[-1], slice(start, start + len(indices)))
            start += len(indices)
        return variables


def from_columns(values: FloatArray, variables: Mapping[str, Variable]) -> dict[str, FloatArray]:
    """Return variables, each (n, *shape), of all the values that a program writes, (n, columns)."""
    named = {}
    for name, (shape, columns) in variables.items():
        flat = values[:, columns].reshape(len(values), *reversed(shape))
        # The first index runs fastest.
        named[name] = flat.transpose(0, *range(len(shape), 0, -1))
    return named


def to_columns(
    values: Mapping[str, Any], variables: Mapping[str, Variable], name: str
) -> FloatArray:
    """Return the values of parameters, each (n, *shape), as (n, columns).

    Raises
    ------
    DataError
        If a parameter is missing or has another shape.
    """
    columns = []
    for parameter, (shape, _) in variables.items():
        if parameter not in values:
            raise DataError(f"{name}: there are no values of the parameter {parameter}")
        array = np.asarray(values[parameter], dtype=np.float64)
        if array.ndim == 0 or array.shape[1:] != shape:
            raise DataError(
                f"{name}: draws of {parameter} have shape {('n', *shape)}; got {array.shape}"
            )
        reversed_axes = array.transpose(0, *range(len(shape), 0, -1))
        columns.append(reversed_axes.reshape(len(array), int(np.prod(shape))))
    if len({len(column) for column in columns}) > 1:
        raise DataError(f"{name}: its parameters must have the same number of draws")
    return np.concatenate(columns, axis=1) if columns else np.empty((0, 0))
