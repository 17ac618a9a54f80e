"""Random statements that make and change tables, of the same list of numbers the same: each is one that DuckDB knows too."""

from sql_cases import Numbers

#: Types as DuckDB spells them, with values: the first are ordinary, the last are the ends of the range.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["1", "0", "-7", "127", "-128"],
    "SMALLINT": ["1", "0", "300", "-32768"],
    "INTEGER": ["1", "0", "2", "-3", "70000", "2147483647"],
    "BIGINT": ["1", "0", "2", "-3", "5000000000", "9223372036854775807", "-9223372036854775807"],
    "UTINYINT": ["1", "0", "200", "255"],
    "USMALLINT": ["1", "0", "65535"],
    "UINTEGER": ["1", "0", "3000000000"],
    "UBIGINT": ["1", "0", "18446744073709551615"],
    "FLOAT": ["1.5", "0", "0.1", "-2.25", "'NaN'", "'Infinity'", "'-Infinity'"],
    "DOUBLE": ["1.5", "0", "0.1", "-2.25", "1e300", "'NaN'", "'Infinity'", "'-Infinity'"],
    "DECIMAL(4,1)": ["1.5", "0", "-2.5", "999.9"],
    "DECIMAL(18,3)": ["1.5", "0", "-2.125", "999999999999999.999"],
    "DECIMAL(38,0)": ["1", "0", "-3", "99999999999999999999999999999999999999"],
    "DECIMAL(38,10)": ["1.5", "0", "-2.125", "9999999999999999999999999999.9999999999"],
    "VARCHAR": ["'a'", "''", "'b'", "'ä'", "'a%'", "'NULL'", "'10'", "'it''s'", "'" + "x" * 300 + "'"],
    "BLOB": ["'a'::BLOB", "''::BLOB", "'\\xFF\\x00'::BLOB"],
    "DATE": ["'2024-02-29'", "'1970-01-01'", "'0001-01-01'", "'9999-12-31'", "'12000-01-01'", "'0044-03-15 (BC)'"],
    "TIME": ["'12:30:00'", "'00:00:00'", "'23:59:59.999999'"],
    "TIMESTAMP": ["'2024-02-29 12:30:00'", "'1969-12-31 23:59:59.5'", "'0001-01-01 00:00:00'", "'9999-12-31 23:59:59.999999'"],
    "TIMESTAMP_S": ["'2024-02-29 12:30:00'", "'1969-12-31 23:59:59'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP_MS": ["'2024-02-29 12:30:00'", "'1969-12-31 23:59:59.5'", "'9999-12-31 23:59:59'"],
    "TIMESTAMP_NS": ["'2024-02-29 12:30:00.123456789'", "'1969-12-31 23:59:59.5'", "'1700-01-01 00:00:00'", "'2262-01-01 00:00:00'"],
    "TIMESTAMP WITH TIME ZONE": ["'2024-02-29 12:30:00+02'", "'1969-12-31 23:59:59.5+00'", "'0001-01-01 00:00:00+00'",
                                 "'9999-12-31 23:59:59+00'"],
    "UUID": ["'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'", "'00000000-0000-0000-0000-000000000000'",
             "'FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF'"],
    "JSON": ["'{\"a\": 1}'", "'[1, 2]'", "'null'"],
    "INTEGER[]": ["[1]", "[]::INTEGER[]", "[1, NULL, 3]", "[2, 1]"],
    "VARCHAR[]": ["['a']", "[]::VARCHAR[]", "['b', NULL]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}", "{'a': 2, 'b': ''}"],
    "STRUCT(a INTEGER, l DECIMAL(6,2)[])": ["{'a': 1, 'l': [1.5]}", "{'a': NULL, 'l': NULL}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {'a': 1}", "MAP {'a': 1, 'b': NULL}"],
    "FLOAT[3]": ["[1.0, 2.0, 3.5]", "[0, 0, 0]"],
}
TYPES = list(VALUES)
NESTED = {kind for kind in TYPES if "[" in kind or "(" in kind and not kind.startswith("DECIMAL")}
INTEGERS = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT"]
NUMBERS = [*INTEGERS, "FLOAT", "DOUBLE", "DECIMAL(4,1)", "DECIMAL(18,3)", "DECIMAL(38,0)", "DECIMAL(38,10)"]
TIMES = ["TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"]
#: What a column becomes while its files stay as they are.
WIDER = {"TINYINT": ["SMALLINT", "INTEGER", "BIGINT"], "SMALLINT": ["INTEGER", "BIGINT"], "INTEGER": ["BIGINT"],
         "UTINYINT": ["USMALLINT", "UINTEGER", "UBIGINT"], "USMALLINT": ["UINTEGER", "UBIGINT"], "UINTEGER": ["UBIGINT"],
         "DECIMAL(4,1)": ["DECIMAL(18,3)", "DECIMAL(38,10)"], "DECIMAL(18,3)": ["DECIMAL(38,10)"], "FLOAT": ["DOUBLE"]}
#: What DuckDB makes of columns of a lake beside these.
WIDER_IN_LAKES = {**WIDER, "BOOLEAN": ["INTEGER"], "INTEGER": ["BIGINT", "DOUBLE", "DECIMAL(18,3)", "JSON"], "BIGINT": ["DOUBLE"],
                  "SMALLINT": ["FLOAT"], "UINTEGER": ["BIGINT"], "VARCHAR": ["JSON"], "DATE": ["TIMESTAMP", "TIMESTAMP_NS"],
                  "DECIMAL(4,1)": ["DOUBLE", "DECIMAL(18,3)"], "TIMESTAMP_S": ["TIMESTAMP", "TIMESTAMP_MS"],
                  "TIMESTAMP_MS": ["TIMESTAMP", "TIMESTAMP_NS"], "TIMESTAMP": ["TIMESTAMP_NS"]}
COLUMNS = ["a", "b", "c", "d", "e", '"F g"', '"Ä"', '"order"']
TABLES = ["t0", "t1", "t2"]


class Changes:
    """Makes statements over `tables`: names to their columns, each its name as written in SQL and its type."""

    def __init__(self, numbers: Numbers, tables):
        self.numbers, self.tables = numbers, tables

    def kind(self):
        # Half of the columns are of a few types, so that columns of two tables meet.
        n = self.numbers
        return n.one(["INTEGER", "VARCHAR", "BIGINT", "DOUBLE", "DECIMAL(18,3)", "TIMESTAMP"]) if n.chance(50) else n.one(TYPES)

    def literal(self, kind):
        """A value of a type, as one would write it; often with its type beside it."""
        n = self.numbers
        if n.chance(15):
            return "NULL"
        value = n.one(VALUES[kind])
        if kind in NESTED or kind == "BLOB":
            return f"CAST({value} AS {kind})" if n.chance(30) or kind == "FLOAT[3]" else value
        if n.chance(40):
            return f"CAST({value} AS {kind})"
        return f"'{value}'" if kind in NUMBERS and value[0] != "'" and n.chance(20) else value

    def typed(self, kind):
        """A value that is of the type whatever stands beside it."""
        value = self.numbers.one(VALUES[kind])
        return f"CAST({value} AS {kind})"

    def column_list(self, columns):
        return ", ".join(name for name, _ in columns)

    def named(self):
        """A table that is there."""
        return self.numbers.one(sorted(self.tables))

    def free_name(self, columns):
        taken = {name.lower() for name, _ in columns}
        free = [name for name in COLUMNS if name.lower() not in taken]
        return self.numbers.one(free) if free else None

    def columns(self):
        made = []
        for _ in range(2 + self.numbers.below(5)):
            made.append((self.free_name(made), self.kind()))
        return made

    def convertible(self, kind):
        """Types whose values become ones of a type where they are written."""
        if kind in NUMBERS:
            return NUMBERS
        if kind in TIMES:
            return [*TIMES, "DATE"]
        if kind == "VARCHAR":
            return ["VARCHAR", "INTEGER", "BOOLEAN", "DATE", "UUID", "DECIMAL(18,3)", "JSON"]
        return [kind]

    def value(self, kind, scope):
        """An expression that is written to a column of a type. `scope`: columns with their tables before them."""
        n = self.numbers
        same = [name for name, other in scope if other == kind]
        others = [name for name, other in scope if other in self.convertible(kind)]
        choice = n.below(6)
        if choice == 0 or not others:
            return self.literal(kind)
        if choice == 1 and same:
            return n.one(same)
        if choice == 2:
            return n.one(others)
        if choice == 3 and same:
            column = n.one(same)
            if kind in NUMBERS:
                return f"{column} + {n.one(['1', '0', '-1'])}"
            if kind == "VARCHAR":
                return n.one([f"upper({column})", f"{column} || 'z'"])
            return f"coalesce({column}, {self.typed(kind)})"
        if choice == 4 and same:
            return f"CASE WHEN {self.predicate(scope)} THEN {n.one(same)} ELSE {self.literal(kind)} END"
        return f"nullif({n.one(same)}, {self.typed(kind)})" if same and kind not in NESTED else self.literal(kind)

    def predicate(self, scope):
        """A condition over columns."""
        n = self.numbers
        if not scope:
            return "true"
        name, kind = n.one(scope)
        choice = n.below(9)
        if choice == 0:
            return f"{name} IS NULL"
        if choice == 1:
            return f"{name} IS NOT NULL"
        if kind in NESTED or kind in ("JSON", "BLOB"):
            return f"{name} = {self.typed(kind)}" if kind not in ("FLOAT[3]", "MAP(VARCHAR, INTEGER)") else f"{name} IS NULL"
        if choice == 2:
            return f"{name} IN ({self.typed(kind)}, {self.typed(kind)})"
        if choice == 3:
            return f"{name} BETWEEN {self.typed(kind)} AND {self.typed(kind)}"
        if choice == 4 and kind == "VARCHAR":
            return f"{name} LIKE {n.one(['a%', '%', 'x%', '_'])!r}"
        if choice == 5:
            return f"({self.predicate(scope)} {n.one(['AND', 'OR'])} {self.predicate(scope)})"
        if choice == 6:
            return f"NOT ({name} {n.one(['=', '<', '>='])} {self.typed(kind)})"
        return f"{name} {n.one(['=', '<', '>', '<=', '>=', '<>'])} {self.typed(kind)}"

    def scope(self, table, alias=None):
        return [(f"{alias or table}.{name}", kind) for name, kind in self.tables[table]]

    def definition(self, columns):
        n = self.numbers
        parts = []
        for name, kind in columns:
            part = f"{name} {kind}"
            if kind not in NESTED and n.chance(20):
                part += f" DEFAULT {self.default(kind)}"
            if n.chance(8):
                part += " NOT NULL"
            parts.append(part)
        return ", ".join(parts)

    def default(self, kind):
        n = self.numbers
        value = n.one(VALUES[kind])
        return f"CAST({value} AS {kind})" if n.chance(25) and kind != "BLOB" else value

    # Statements: each returns the SQL and the table that it changes.

    def create(self):
        n = self.numbers
        name = n.one(TABLES)
        how = n.one(["TABLE", "TABLE IF NOT EXISTS", "OR REPLACE TABLE", "OR REPLACE TABLE"])
        if self.tables and n.chance(35):
            other = self.named()
            scope = self.scope(other)
            items = ", ".join(f"CAST({self.value(kind, scope)} AS {kind}) AS {column}" for column, kind in self.columns())
            items = items if n.chance(60) else "*"
            return f"CREATE {how} {name} AS SELECT {items} FROM {other} WHERE {self.predicate(scope)}", name
        return f"CREATE {how} {name} ({self.definition(self.columns())})", name

    def drop(self):
        return f"DROP TABLE {self.numbers.one(['IF EXISTS ', ''])}{self.numbers.one(TABLES)}", None

    def insert(self):
        n = self.numbers
        name = self.named()
        columns = list(self.tables[name])
        chosen = columns
        if n.chance(40):
            chosen = [column for column in columns if n.chance(60)] or columns
            if n.chance(30):
                chosen = list(reversed(chosen))
        named = f" ({self.column_list(chosen)})" if chosen is not columns or n.chance(30) else ""
        how = n.below(10)
        if how < 5:
            rows = []
            for _ in range(1 + n.below(6)):
                cells = ["DEFAULT" if n.chance(8) else self.literal(kind) for _, kind in chosen]
                rows.append(f"({', '.join(cells)})")
            return f"INSERT INTO {name}{named} VALUES {', '.join(rows)}", name
        if how == 5:
            count = n.one([3, 50, 3000])
            cells = [self.literal(kind) if kind not in INTEGERS[2:4] else "i" for _, kind in chosen]
            return f"INSERT INTO {name}{named} SELECT {', '.join(cells)} FROM generate_series(1, {count}) AS s(i)", name
        other = self.named()
        scope = self.scope(other)
        if how == 6:
            items = ", ".join(f"{self.value(kind, scope)} AS {column}" for column, kind in chosen)
            return f"INSERT INTO {name} BY NAME SELECT {items} FROM {other} WHERE {self.predicate(scope)}", name
        items = ", ".join(self.value(kind, scope) for _, kind in chosen)
        return f"INSERT INTO {name}{named} SELECT {items} FROM {other} WHERE {self.predicate(scope)}", name

    def joined(self, name):
        """Another relation with one row for each key, and the condition under which a row of the table meets one."""
        n = self.numbers
        other = self.named()
        pairs = [(mine, theirs, kind) for mine, kind in self.tables[name] for theirs, same in self.tables[other]
                 if kind == same and kind not in NESTED and kind not in ("JSON", "BLOB")]
        if not pairs:
            return None
        mine, theirs, kind = n.one(pairs)
        rest = [(column, same) for column, same in self.tables[other] if same in NUMBERS or same in TIMES or same == "VARCHAR"]
        items = [f"{theirs} AS k"] + [f"max({column}) AS v{at}" for at, (column, _) in enumerate(rest[:3])]
        query = f"(SELECT {', '.join(items)} FROM {other} WHERE {self.predicate(self.scope(other))} GROUP BY {theirs}) AS s"
        scope = [("s.k", kind)] + [(f"s.v{at}", same) for at, (_, same) in enumerate(rest[:3])]
        return query, f"t.{mine} = s.k", scope

    def assignments(self, name, scope):
        n = self.numbers
        columns = self.tables[name]
        chosen = [columns[n.below(len(columns))]]
        chosen += [column for column in columns if column not in chosen and n.chance(20)]
        return ", ".join(f"{column} = {'DEFAULT' if n.chance(5) else self.value(kind, scope)}" for column, kind in chosen)

    def returning(self, name, alias):
        n = self.numbers
        if not n.chance(25):
            return ""
        if n.chance(50):
            return " RETURNING *"
        return f" RETURNING {', '.join(column for column, _ in self.tables[name][:2])}"

    def update(self):
        n = self.numbers
        name = self.named()
        joined = self.joined(name) if n.chance(35) else None
        scope = self.scope(name, "t")
        if joined:
            query, condition, theirs = joined
            where = f"{condition} AND {self.predicate(scope)}" if n.chance(40) else condition
            return f"UPDATE {name} AS t SET {self.assignments(name, scope + theirs)} FROM {query} WHERE {where}", name
        where = f" WHERE {self.predicate(scope)}" if n.chance(85) else ""
        return f"UPDATE {name} AS t SET {self.assignments(name, scope)}{where}{self.returning(name, 't')}", name

    def delete(self):
        n = self.numbers
        name = self.named()
        joined = self.joined(name) if n.chance(30) else None
        if joined:
            query, condition, _ = joined
            return f"DELETE FROM {name} AS t USING {query} WHERE {condition}", name
        return f"DELETE FROM {name} AS t WHERE {self.predicate(self.scope(name, 't'))}{self.returning(name, 't')}", name

    def merge(self):
        n = self.numbers
        name = self.named()
        joined = self.joined(name)
        if not joined:
            return self.update()
        query, condition, theirs = joined
        scope = self.scope(name, "t")
        clauses = []
        for last in ([True] if n.chance(50) else [False, True]):
            # An action without a condition ends them.
            also = f" AND {self.predicate(scope + theirs)}" if not last or n.chance(50) else ""
            then = n.one([f"UPDATE SET {self.assignments(name, scope + theirs)}", "DELETE", "DO NOTHING",
                          f"UPDATE SET {self.assignments(name, scope + theirs)}"])
            clauses.append(f"WHEN MATCHED{also} THEN {then}")
        if n.chance(60):
            columns = self.tables[name]
            chosen = [column for column in columns if n.chance(70)] or columns
            values = ", ".join(self.value(kind, theirs) for _, kind in chosen)
            also = f" AND {self.predicate(theirs)}" if n.chance(30) else ""
            clauses.append(f"WHEN NOT MATCHED{also} THEN INSERT ({self.column_list(chosen)}) VALUES ({values})")
        if n.chance(25):
            also = f" AND {self.predicate(scope)}" if n.chance(60) else ""
            then = n.one(["DELETE", f"UPDATE SET {self.assignments(name, scope)}"])
            clauses.append(f"WHEN NOT MATCHED BY SOURCE{also} THEN {then}")
        return f"MERGE INTO {name} AS t USING {query} ON {condition} {' '.join(clauses)}", name

    def truncate(self):
        name = self.named()
        return self.numbers.one([f"DELETE FROM {name}", f"TRUNCATE {name}"]), name

    def alter_in_lake(self):
        """A change of a type that DuckDB makes in a lake; nothing where there is none."""
        n = self.numbers
        name = self.named()
        widened = [(column, to) for column, kind in self.tables[name] for to in WIDER_IN_LAKES.get(kind, [])]
        if not widened:
            return None
        column, to = n.one(widened)
        return f"ALTER TABLE {name} ALTER COLUMN {column} TYPE {to}", name

    def alter(self):
        n = self.numbers
        name = self.named()
        columns = self.tables[name]
        column, kind = n.one(columns)
        choice = n.below(12)
        if choice < 3:
            fresh, kind = self.free_name(columns), self.kind()
            if fresh:
                default = f" DEFAULT {self.default(kind)}" if kind not in NESTED and n.chance(60) else ""
                return f"ALTER TABLE {name} ADD COLUMN {fresh} {kind}{default}", name
            choice = 3
        if choice == 3:
            return f"ALTER TABLE {name} DROP COLUMN {column}", name
        if choice in (4, 5):
            fresh = self.free_name(columns)
            if fresh:
                return f"ALTER TABLE {name} RENAME COLUMN {column} TO {fresh}", name
            choice = 6
        if choice in (6, 7, 8):
            widened = [(mine, to) for mine, of in columns for to in WIDER.get(of, [])]
            if widened:
                mine, to = n.one(widened)
                return f"ALTER TABLE {name} ALTER COLUMN {mine} TYPE {to}", name
            choice = 9
        if choice == 9 and kind not in NESTED:
            to = n.one([f"SET DEFAULT {self.default(kind)}", "DROP DEFAULT"])
            return f"ALTER TABLE {name} ALTER COLUMN {column} {to}", name
        if choice == 10:
            return f"ALTER TABLE {name} ALTER COLUMN {column} {n.one(['SET', 'DROP'])} NOT NULL", name
        to = n.one([table for table in TABLES if table != name])
        return f"ALTER TABLE {name} RENAME TO {to}", to

    def statement(self):
        """The SQL of a random statement, and the table that it changes."""
        n = self.numbers
        if not self.tables or n.chance(6):
            return self.create()
        kinds = [self.insert] * 9 + [self.update] * 7 + [self.delete] * 3 + [self.merge] * 5 + [self.alter] * 8 + [
            self.truncate, self.drop]
        return n.one(kinds)()
