"""Follow statements: what variables are made of after each, and what it adds to the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from harness.temper import tree
from harness.temper.additions import Addition, Context
from harness.temper.elements import Affine, Frame, Interval, Piece
from harness.temper.evaluate import Expressions
from harness.temper.flow import NOTHING, Value, added, joined, reached, union
from harness.temper.sums import Density, density_call, terms
from harness.temper.tree import Node, assigned, inner_statements, items, name_of, stmt, tag, walk

Variables = dict[str, Value]


@dataclass
class Scope:
    """Where statements stand.

    Attributes
    ----------
    left
        What variables were made of where the innermost loop, or a turn of it, was left.
    returned
        What the function returned.
    """

    left: list[Variables] = field(default_factory=list)
    returned: list[Value] = field(default_factory=list)


class Statements:
    """Follows statements of a program, or of one of its functions.

    Parameters
    ----------
    expressions
        Evaluates expressions.
    """

    def __init__(self, expressions: Expressions) -> None:
        self.expressions = expressions
        self.additions: dict[int, list[Addition]] = {}
        self.called: list[Addition] = []
        """What functions add that the statement calls which is being followed."""
        self.stops: dict[int, Value] = {}
        """What decides whether a statement rejects the point."""
        self.stopped: list[Value] = []
        """The same of functions that the statement calls which is being followed."""

    def follow(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        """Follow a statement, in a state that it changes; return the context of the next."""
        method = getattr(self, f"_{tag(stmt(node))}", None)
        if method is None:
            return context
        self.additions.pop(id(node), None)  # of an earlier turn of a loop
        outside, self.called = self.called, []
        before, self.stopped = self.stopped, []
        after: Context = method(node, state, context, scope)
        if self.called:
            found = self.additions.setdefault(id(node), [])
            found += [replace(each, context=each.context.within(context)) for each in self.called]
        self.called = outside
        if self.stopped:
            self.stops[id(node)] = union([context.value, *self.stopped])
        self.stopped = before
        return after

    # Compound statements

    def _Block(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        for each in items(items(stmt(node))[-1]):
            context = self.follow(each, state, context, scope)
        return context

    _Profile = _Block

    def _IfThenElse(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        _, condition, yes, no = items(stmt(node))
        decides = self.expressions.condition(self.expressions.of(condition, state))
        other = dict(state)
        self.follow(yes, state, context.under(decides, (id(node), 0)), scope)
        for each in items(no):
            self.follow(each, other, context.under(decides, (id(node), 1)), scope)
        _join(state, other)
        return context.under(decides, (id(node), -1)) if _leaves(node) else context

    def _For(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        form = stmt(node)
        name = name_of(tree.field(form, "loop_variable"))
        low, high = (
            self.expressions.of(tree.field(form, f"{each}_bound"), state)
            for each in ("lower", "upper")
        )
        frame = Frame(f"{name}@{id(node)}", low.number, high.number)
        bounds = union(map(self.expressions.bound, (low, high)))
        variable = replace(bounds, number=Affine(frame.symbol, 0))
        loop = _Loop(node, tree.field(form, "loop_body"), frame, {name: variable})
        return self._turns(loop, state, context, lambda _: bounds, scope)

    def _ForEach(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        _, name, over, body = items(stmt(node))
        value = self.expressions.of(over, state)
        frame = Frame(f"{name_of(name)}@{id(node)}")
        variable = replace(value, itself=None, number=None)
        piece = value.itself[0] if value.itself and len(value.itself) == 1 else None
        axis = piece.box[piece.open[0]] if piece and piece.open else None
        if piece and piece.open and axis:
            frame = Frame(frame.symbol, axis.low, axis.high)
            box, at = list(piece.box), Affine(frame.symbol, 0)
            box[piece.open[0]] = Interval(at, at)
            piece = Piece(piece.parameter, tuple(box), piece.open[1:])
            variable = replace(variable, touched=frozenset([piece]), itself=(piece,))
        size = Value(choices=value.data & self.expressions.declared.dimensioned)
        loop = _Loop(node, body, frame, {name_of(name): variable})
        return self._turns(loop, state, context, lambda _: size, scope)

    def _While(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        _, condition, body = items(stmt(node))

        def decides(now: Variables) -> Value:
            value = self.expressions.of(condition, now)
            counts = Value(choices=self.expressions.bound(Value(data=value.data)).choices)
            return union([self.expressions.condition(value), counts])

        loop = _Loop(node, body, Frame(f"@{id(node)}"), {})
        return self._turns(loop, state, context, decides, scope)

    def _turns(
        self,
        loop: _Loop,
        state: Variables,
        context: Context,
        decides: Callable[[Variables], Value],
        scope: Scope,
    ) -> Context:
        """Follow a loop's turns until another one finds nothing new."""
        broken = NOTHING
        while True:
            inner = context.turning(union([decides(state), broken]), loop.frame)
            if broken != NOTHING:
                inner = replace(inner, path=(*inner.path, (id(loop.node), -1)))
            here = Scope(returned=scope.returned)
            once = state | loop.variable
            after = self.follow(loop.body, once, inner, here)
            before = dict(state)
            for each in (once, *here.left):
                kept = {name: each[name] for name in each if name not in loop.variable}
                _join(state, {name: value.over(loop.frame) for name, value in kept.items()})
            # What a turn broke off for decides over the turns after it.
            breaks = _has(loop.body, ("Break",)) and after.value != inner.value
            last, broken = broken, after.value.over(loop.frame) if breaks else broken
            if state == before and last == broken:
                break
        if _has(loop.body, _RETURNS):
            return context.under(after.value.over(loop.frame), (id(loop.node), -1))
        return context

    # Jumps

    def _Break(self, _: Node, state: Variables, context: Context, scope: Scope) -> Context:
        scope.left.append(dict(state))
        return context

    _Continue = _Break

    def _Return(self, node: Node, state: Variables, context: Context, scope: Scope) -> Context:
        value = self.expressions.of(items(stmt(node))[1], state)
        value = reached(value, context.value)
        for frame in reversed(context.loops):
            value = value.over(frame)
        scope.returned.append(value)
        return context

    def _Reject(self, _: Node, __: Variables, context: Context, ___: Scope) -> Context:
        self.stopped.append(context.value)
        return context

    _FatalError = _Reject

    # Assignments

    def _VarDecl(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        for each in items(tree.field(stmt(node), "variables")):
            initial = items(tree.field(each, "initial_value"))
            value = self.expressions.of(initial[0], state) if initial else NOTHING
            if initial:
                value = reached(value, context.value)
            state[name_of(tree.field(each, "identifier"))] = value
        return context

    def _Assignment(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        form = stmt(node)
        value = self.expressions.of(tree.field(form, "assign_rhs"), state)
        operator, left = tree.field(form, "assign_op"), tree.field(form, "assign_lhs")
        kind = "" if tag(operator) == "Assign" else tag(items(operator)[1])
        whole = tag(left) == "LValue" and tag(tree.field(items(left)[1], "lval")) == "LVariable"
        places = self._places(left, state)
        for name in assigned(left):
            old, new = state.get(name, NOTHING), value
            if kind in ("Plus", "Minus"):
                new = added(old, value, 1 if kind == "Plus" else -1)
            elif kind:
                new = union([old, value])
            new = reached(reached(new, places), context.value)
            if not whole:
                new = replace(joined(old, new), itself=None, number=None)
            state[name] = new
        return context

    def _places(self, left: Node, state: Variables) -> Value:
        """Return what reaches a variable by the indices that it is assigned at."""
        found = []
        for each in walk(left):
            if isinstance(each, str) or not each or each[0] != "LIndexed":
                continue
            for index in items(each[2]):
                if isinstance(index, str):
                    continue
                single = tag(index) == "Single"
                how = self.expressions.position if single else self.expressions.bound
                found += [how(self.expressions.of(end, state)) for end in items(index)[1:]]
        return union(found)

    # What adds to the target

    def _Tilde(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        form = stmt(node)
        arg, args = tree.field(form, "arg"), items(tree.field(form, "args"))
        truncation = tree.field(form, "truncation")
        density = Density(
            f"{name_of(tree.field(form, 'distribution'))}_lpdf",
            (arg, *args),
            own=tag(tree.field(form, "kind")) == "UserDefined",
            truncation=truncation,
        )
        ends = () if tag(truncation) == "NoTruncate" else items(truncation)[1:]
        given = union(self.expressions.of(each, state) for each in (*args, *ends))
        value = self.expressions.of(arg, state)
        self.additions[id(node)] = [Addition(arg, "+", value, density, given, context)]
        return context

    def _TargetPE(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        found = []
        for sign, term in terms(items(stmt(node))[1]):
            density, given = density_call(term), NOTHING
            value = self.expressions.of(term, state)
            if density is not None:
                value = self.expressions.of(density.args[0], state)
                given = union(self.expressions.of(each, state) for each in density.args[1:])
            found.append(Addition(term, sign, value, density, given, context))
        self.additions[id(node)] = found
        return context

    def _JacobianPE(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        term = items(stmt(node))[1]
        value = self.expressions.of(term, state)
        addition = Addition(term, "+", value, None, NOTHING, context, jacobian=True)
        self.additions[id(node)] = [addition]
        return context

    def _NRFunApp(self, node: Node, state: Variables, context: Context, _: Scope) -> Context:
        self.expressions.call(stmt(node), state)
        return context


@dataclass(frozen=True)
class _Loop:
    node: Node
    body: Node
    frame: Frame
    variable: Variables


_LOOPS = ("For", "ForEach", "While")
_RETURNS = ("Return", "ReturnVoid")


def _join(state: Variables, other: Variables) -> None:
    for name, value in other.items():
        state[name] = joined(state[name], value) if name in state else value


def _has(node: Node, kinds: Iterable[str]) -> bool:
    """Whether a loop's body has a jump out of the loop, or out of a function, in it."""
    form = stmt(node)
    if tag(form) in kinds:
        return True
    wanted = _RETURNS if tag(form) in _LOOPS else kinds
    return any(_has(each, set(wanted) & set(kinds)) for each in inner_statements(form))


def _leaves(node: Node) -> bool:
    """Whether what follows a conditional may have been left in it."""
    return _has(node, ("Break", "Continue", *_RETURNS))
