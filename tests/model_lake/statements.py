"""The changes that a random history is made of, as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from tests.model_lake.shapes import LARGE, VALUES, Shape

Sql = tuple[str, str]  # a statement, and the rows that it copies


@dataclass(slots=True)
class FreeRows:
    """The keys of one table that a transaction may touch, and what it makes of them."""

    rows: dict[int, bool]  # whether the key has a row
    changed: dict[int, bool] = field(default_factory=dict)

    @property
    def live(self) -> list[int]:
        """Keys that have a row."""
        return [key for key, lives in self.rows.items() if lives]

    @property
    def dead(self) -> list[int]:
        """Keys that have none."""
        return [key for key, lives in self.rows.items() if not lives]

    def touch(self, *keys: int) -> None:
        """Note that the keys' rows are locked from now on."""
        for key in keys:
            self.changed[key] = self.rows[key]

    def set(self, key: int, lives: bool) -> None:
        """Note whether the key has a row from now on."""
        self.rows[key] = self.changed[key] = lives


class Statements:
    """Random statements of one history; each value in them is its own."""

    def __init__(self, random: Random, seed: int) -> None:
        self._random = random
        self._seed = seed
        self._written = 0
        # How often, how many live and dead keys it needs at least, and the change.
        self._kinds: tuple[tuple[int, int, int, Callable[[Shape, FreeRows], list[Sql]]], ...] = (
            (3, 0, 1, self._insert),
            (1, 0, 2, self._insert_many),
            (1, 0, 2, self._copy),
            (4, 1, 0, self._update),
            (3, 1, 0, self._update_large),
            (1, 1, 0, self._rewrite),
            (1, 1, 0, self._update_nothing),
            (1, 2, 0, self._update_many),
            (2, 1, 0, self._delete),
            (1, 2, 0, self._delete_many),
            (1, 1, 0, self._delete_and_insert),
            (2, 1, 1, self._move),
            (1, 1, 2, self._chain),
            (1, 2, 1, self._swap),
            (2, 1, 0, self._upsert_live),
            (1, 0, 1, self._upsert_dead),
            (1, 1, 0, self._insert_or_nothing),
        )

    def change(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        """One change that is possible, noted in `rows`; nothing if there is none."""
        live, dead = len(rows.live), len(rows.dead)
        possible = [kind for kind in self._kinds if kind[1] <= live and kind[2] <= dead]
        if not possible:
            return []
        [(_, _, _, chosen)] = self._random.choices(possible, [kind[0] for kind in possible])
        return chosen(shape, rows)

    # --- values ----------------------------------------------------------------------------------

    def _tag(self) -> str:
        self._written += 1
        return f"{self._seed}.{self._written}"

    def _small(self, column: str) -> str:
        if column == "v":
            return self._random.choice([str(self._random.randrange(-99, 1000)), "NULL"])
        return self._random.choice(
            [f"'note {self._tag()}'", "'it''s \\ \u00fc \U0001f42c'", "''", "NULL"]
        )

    def _large(self, column: str) -> str:
        """Mostly a value that is stored out of line."""
        tag, kind = self._tag(), self._random.random()
        if kind < 0.15:
            return "NULL"
        short = kind < 0.35
        if column == "body":
            return "''" if short else f"repeat('body {tag} ', 400)"
        if column == "raw":
            return r"'\x'" if short else f"decode(md5('{tag}') || repeat('00ff', 1300), 'hex')"
        if short:
            return f"""'{{"n": 12345678901234567890.123456789, "tag": "{tag}"}}'"""
        return f"jsonb_build_object('n', 1e400::numeric, 'text', repeat('{tag} ', 500))"

    def _value(self, column: str) -> str:
        return self._large(column) if column in LARGE else self._small(column)

    def _all_values(self) -> list[str]:
        return [self._value(column) for column in VALUES]

    # --- SQL -------------------------------------------------------------------------------------

    def _key(self, shape: Shape, key: int) -> list[str]:
        values = shape.key_values(self._seed, key)
        return ["'" + value.replace("'", "''") + "'" for value in values]

    def _where(self, shape: Shape, *keys: int) -> str:
        listed = ", ".join(f"({', '.join(self._key(shape, key))})" for key in keys)
        return f"({', '.join(shape.key_columns)}) IN ({listed})"

    def _inserted(self, shape: Shape, keys: Sequence[int]) -> str:
        rows = [f"({', '.join([*self._key(shape, key), *self._all_values()])})" for key in keys]
        columns = ", ".join([*shape.key_columns, *VALUES])
        return f"INSERT INTO {shape.name} ({columns}) VALUES {', '.join(rows)}"

    def _set(self, shape: Shape, assigned: Sequence[str], *keys: int) -> str:
        return f"UPDATE {shape.name} SET {', '.join(assigned)} WHERE {self._where(shape, *keys)}"

    def _some(self, keys: list[int]) -> list[int]:
        return self._random.sample(keys, self._random.randint(2, min(4, len(keys))))

    # --- changes ---------------------------------------------------------------------------------

    def _insert(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        key = self._random.choice(rows.dead)
        rows.set(key, True)
        return [(self._inserted(shape, [key]), "")]

    def _insert_many(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        keys = self._some(rows.dead)
        for key in keys:
            rows.set(key, True)
        return [(self._inserted(shape, keys), "")]

    def _copy(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        """Rows that are written together, and so share one LSN."""
        keys = self._some(rows.dead)
        lines = []
        for key in keys:
            rows.set(key, True)
            tag = self._tag()
            raw = "\\\\x" + tag.encode().hex() * 200
            values = ("7", "\\N", f"copied {tag} " * 250, f'{{"tag": "{tag}"}}', raw)
            lines.append("\t".join([*shape.key_values(self._seed, key), *values]) + "\n")
        columns = ", ".join([*shape.key_columns, *VALUES])
        return [(f"COPY {shape.name} ({columns}) FROM STDIN", "".join(lines))]

    def _update(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        column = self._random.choice(["v", "note"])
        key = self._random.choice(rows.live)
        rows.touch(key)
        return [(self._set(shape, [f"{column} = {self._small(column)}"], key), "")]

    def _update_large(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        column = self._random.choice(LARGE)
        key = self._random.choice(rows.live)
        rows.touch(key)
        return [(self._set(shape, [f"{column} = {self._large(column)}"], key), "")]

    def _rewrite(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        key = self._random.choice(rows.live)
        rows.touch(key)
        return [(self._set(shape, self._rewritten(), key), "")]

    def _rewritten(self) -> list[str]:
        return [f"{column} = {self._large(column)}" for column in LARGE]

    def _update_nothing(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        column = self._random.choice([*VALUES, *shape.key_columns])
        key = self._random.choice(rows.live)
        rows.touch(key)
        return [(self._set(shape, [f"{column} = {column}"], key), "")]

    def _update_many(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        keys = self._some(rows.live)
        rows.touch(*keys)
        return [(self._set(shape, ["v = coalesce(v, 0) + 1"], *keys), "")]

    def _delete(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        return self._deleted(shape, rows, [self._random.choice(rows.live)])

    def _delete_many(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        return self._deleted(shape, rows, self._some(rows.live))

    def _deleted(self, shape: Shape, rows: FreeRows, keys: list[int]) -> list[Sql]:
        for key in keys:
            rows.set(key, False)
        return [(f"DELETE FROM {shape.name} WHERE {self._where(shape, *keys)}", "")]

    def _delete_and_insert(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        key = self._random.choice(rows.live)
        deleted = self._deleted(shape, rows, [key])
        rows.set(key, True)
        return [*deleted, (self._inserted(shape, [key]), "")]

    def _move(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        return [self._moved(shape, rows, self._random.choice(rows.live), rows.dead)]

    def _chain(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        """One row through two keys, then perhaps on to the first one."""
        start = self._random.choice(rows.live)
        first, second = self._random.sample(rows.dead, 2)
        path = [start, first, second, *([start] if self._random.random() < 0.5 else [])]
        return [self._moved(shape, rows, old, [new]) for old, new in pairwise(path)]

    def _swap(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        one, other = self._random.sample(rows.live, 2)
        aside = self._random.choice(rows.dead)
        path = [(one, aside), (other, one), (aside, other)]
        return [self._moved(shape, rows, old, [new]) for old, new in path]

    def _moved(self, shape: Shape, rows: FreeRows, old: int, targets: list[int]) -> Sql:
        """A changed key; a row may keep its values unsent over any number of them."""
        new = self._random.choice(targets)
        names = zip(shape.key_columns, self._key(shape, new), strict=True)
        assigned = [f"{name} = {value}" for name, value in names]
        if self._random.random() < 0.4:
            column = self._random.choice(VALUES)
            assigned.append(f"{column} = {self._value(column)}")
        statement = self._set(shape, assigned, old)
        rows.set(old, False)
        rows.set(new, True)
        return statement, ""

    def _upsert_live(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        key = self._random.choice(rows.live)
        rows.touch(key)
        return [self._upserted(shape, key)]

    def _upsert_dead(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        key = self._random.choice(rows.dead)
        rows.set(key, True)
        return [self._upserted(shape, key)]

    def _upserted(self, shape: Shape, key: int) -> Sql:
        columns = self._random.sample(VALUES, self._random.randint(1, 3))
        assigned = ", ".join(f"{column} = excluded.{column}" for column in columns)
        target = ", ".join(shape.key_columns)
        inserted = self._inserted(shape, [key])
        return f"{inserted} ON CONFLICT ({target}) DO UPDATE SET {assigned}", ""

    def _insert_or_nothing(self, shape: Shape, rows: FreeRows) -> list[Sql]:
        inserted = self._inserted(shape, [self._random.choice(rows.live)])
        return [(f"{inserted} ON CONFLICT DO NOTHING", "")]
