"""Random tables and random SQL over them, made of a list of numbers: the same numbers make the same statement, smaller numbers
a simpler one. So a statement that shows a fault is made smaller by trying smaller numbers, without knowing its grammar."""

import random
import re

INT, FLOAT, TEXT, BOOL, DECIMAL, DATE, TIME, LIST = "int", "float", "text", "bool", "decimal", "date", "time", "list"
TYPES = [INT, TEXT, FLOAT, BOOL, DECIMAL, DATE, TIME, LIST]
SQL_TYPES = {INT: "BIGINT", FLOAT: "DOUBLE", TEXT: "VARCHAR", BOOL: "BOOLEAN", DECIMAL: "DECIMAL(10,2)", DATE: "DATE",
             TIME: "TIMESTAMP", LIST: "BIGINT[]"}
#: Few values, so that joins and groups meet; floats whose sums are exact in any order.
VALUES = {
    INT: ["1", "0", "2", "3", "-1", "7", "2147483648"],
    FLOAT: ["1.5e0", "0e0", "-2.25e0", "CAST('NaN' AS DOUBLE)", "CAST('Infinity' AS DOUBLE)", "-CAST('Infinity' AS DOUBLE)", "-0e0"],
    TEXT: ["'a'", "''", "'b'", "'A'", "'ab'", "' a'", "'ä'", "'a%'", "'10'", "'NULL'"],
    BOOL: ["true", "false"],
    DECIMAL: [f"CAST({value} AS DECIMAL(10,2))" for value in ("1.50", "0.00", "-2.25", "99999.99")],
    DATE: [f"DATE '{value}'" for value in ("2024-02-29", "1970-01-01", "1969-12-31", "2024-12-31")],
    TIME: [f"TIMESTAMP '{value}'" for value in ("2024-02-29 00:00:00", "2024-02-29 12:34:56.789", "1969-12-31 23:59:59.5",
                                                "1970-01-01 00:00:00")],
    LIST: [f"CAST({value} AS BIGINT[])" for value in ("[1]", "[]", "[1, NULL]", "[NULL]", "[2, 1]")],
}
#: What tables hold of them: a zero of theirs has no sign, as `docs/types.md` says.
STORED = {**VALUES, FLOAT: VALUES[FLOAT][:-1]}
ORDERED = [INT, TEXT, FLOAT, DECIMAL, DATE, TIME]
#: How a literal stands in a statement until it is known whether it becomes a parameter.
MARK = re.compile("\x01(.*?)\x02")


class Numbers:
    """Numbers that decide: those that are given, then random ones, or zeros where there is no `seed`."""

    def __init__(self, given=(), seed=None):
        self.taken, self.at = list(given), 0
        self.source = random.Random(seed) if seed is not None else None

    def below(self, bound):
        if self.at == len(self.taken):
            self.taken.append(self.source.randrange(1 << 16) if self.source else 0)
        self.at += 1
        return self.taken[self.at - 1] % bound

    def one(self, choices):
        return choices[self.below(len(choices))]

    def chance(self, percent):
        """True for that many in a hundred; zero is false."""
        return self.below(100) >= 100 - percent


def literal_text(statement):
    """The statement with its literals."""
    return MARK.sub(lambda mark: mark[1], statement)


def parametrised(statement):
    """The statement with `$1`, `$2`, ... for whole numbers and texts, and their values."""
    values = []

    def replace(mark):
        text = mark[1]
        if re.fullmatch(r"-?\d+", text):
            values.append(int(text))
        elif text.startswith("'"):
            values.append(text[1:-1])
        else:
            return text
        return f"${len(values)}"

    return MARK.sub(replace, statement), values


class Table:
    """A table by name, with its columns' types; the first is `id`, which no two rows share."""

    def __init__(self, name, columns):
        self.name, self.columns = name, columns


def random_table(numbers, name):
    """A table, and its rows as SQL values."""
    columns = [("id", INT)] + [(f"c{at}", numbers.one(TYPES)) for at in range(2 + numbers.below(4))]
    rows, nulls = numbers.one([0, 1, 5, 12, 25, 40]), numbers.one([0, 20, 60])
    values = []
    for row in range(rows):
        cells = ["NULL" if numbers.chance(nulls) else numbers.one(STORED[kind]) for _, kind in columns[1:]]
        values.append([str(row + 1), *cells])
    return Table(name, columns), values


class Statements:
    """Makes expressions and statements over tables."""

    def __init__(self, numbers, tables):
        self.numbers, self.tables = numbers, tables
        self.aliases = 0

    def alias(self):
        self.aliases += 1
        return f"s{self.aliases}"

    def literal(self, kind):
        value = self.numbers.one(VALUES[kind])
        return f"\x01{value}\x02" if kind in (INT, TEXT) else value

    def columns(self, scope, kind):
        return [name for name, other in scope if other == kind]

    def expression(self, kind, scope, depth):
        """An expression of that type over the columns of `scope`."""
        n = self.numbers
        columns = self.columns(scope, kind)
        leaf = n.below(4)
        if depth == 0 or leaf < 2:
            return n.one(columns) if columns and not (leaf == 1 and n.chance(30)) else self.literal(kind)
        again = lambda other: self.expression(other, scope, depth - 1)  # noqa: E731
        general = n.below(8)
        if general == 1:
            return f"coalesce({again(kind)}, {again(kind)})"
        if general == 2:
            return f"CASE WHEN {again(BOOL)} THEN {again(kind)} ELSE {again(kind)} END"
        if general == 3 and kind not in (LIST, BOOL):
            return f"nullif({again(kind)}, {again(kind)})"
        if general == 4 and kind not in (LIST, BOOL, FLOAT):
            return self.scalar_subquery(kind, scope, depth)
        if kind == BOOL:
            return self.predicate(scope, depth)
        forms = {
            INT: [lambda: f"({again(INT)} + {again(INT)})", lambda: f"({again(INT)} - {again(INT)})",
                  lambda: f"({again(INT)} * {n.one(['2', '-3', '0'])})", lambda: f"abs({again(INT)})",
                  lambda: f"length({again(TEXT)})", lambda: f"CAST({again(BOOL)} AS BIGINT)",
                  lambda: f"extract(year FROM {again(DATE)})", lambda: f"len({again(LIST)})",
                  lambda: f"({again(INT)} % {n.one(['2', '3', '-5'])})"],
            FLOAT: [lambda: f"({again(FLOAT)} + {again(FLOAT)})", lambda: f"abs({again(FLOAT)})",
                    lambda: f"CAST({again(INT)} AS DOUBLE)", lambda: f"(- {again(FLOAT)})"],
            TEXT: [lambda: f"({again(TEXT)} || {again(TEXT)})", lambda: f"upper({again(TEXT)})", lambda: f"lower({again(TEXT)})",
                   lambda: f"substr({again(TEXT)}, {n.one(['1', '2', '3'])}, {n.one(['1', '2', '0'])})",
                   lambda: f"replace({again(TEXT)}, 'a', {again(TEXT)})", lambda: f"CAST({again(INT)} AS VARCHAR)",
                   lambda: f"trim({again(TEXT)})", lambda: f"CAST({again(BOOL)} AS VARCHAR)"],
            DECIMAL: [lambda: f"({again(DECIMAL)} + {again(DECIMAL)})", lambda: f"(- {again(DECIMAL)})",
                      lambda: f"abs({again(DECIMAL)})"],
            DATE: [lambda: f"CAST({again(TIME)} AS DATE)", lambda: f"CAST({again(DATE)} AS DATE)"],
            TIME: [lambda: f"date_trunc('month', {again(TIME)})", lambda: f"CAST({again(DATE)} AS TIMESTAMP)"],
            LIST: [lambda: f"coalesce({again(LIST)}, {self.literal(LIST)})"],
        }
        return n.one(forms[kind])()

    def predicate(self, scope, depth):
        n = self.numbers
        if depth <= 0:
            columns = self.columns(scope, BOOL)
            if columns and n.chance(30):
                return n.one(columns)
            return self.comparison(scope, 0)
        again = lambda: self.predicate(scope, depth - 1)  # noqa: E731
        kind = n.one(ORDERED)
        value = lambda: self.expression(kind, scope, depth - 1)  # noqa: E731
        form = n.below(18)
        if form <= 3:
            return self.comparison(scope, depth - 1)
        if form == 4:
            return f"({value()} IS {n.one(['', 'NOT '])}NULL)"
        if form == 5:
            return f"({again()} AND {again()})"
        if form == 6:
            return f"({again()} OR {again()})"
        if form == 7:
            return f"(NOT {again()})"
        if form == 8:
            return f"({value()} {n.one(['', 'NOT '])}BETWEEN {value()} AND {value()})"
        if form == 9:
            items = [self.literal(kind) for _ in range(1 + n.below(4))] + (["NULL"] if n.chance(20) else [])
            return f"({value()} {n.one(['', 'NOT '])}IN ({', '.join(items)}))"
        if form == 10:
            pattern = n.one(["'a%'", "'%a'", "'_'", "'%'", "''", "'A%b'"])
            return f"({self.expression(TEXT, scope, depth - 1)} {n.one(['', 'NOT '])}{n.one(['LIKE', 'ILIKE'])} {pattern})"
        if form == 11:
            return f"({again()} IS {n.one(['TRUE', 'NOT TRUE', 'FALSE', 'NOT FALSE', 'NULL'])})"
        if form == 12:
            return f"list_contains({self.expression(LIST, scope, depth - 1)}, {self.expression(INT, scope, depth - 1)})"
        if form == 13:
            return f"CASE WHEN {again()} THEN {again()} ELSE {again()} END"
        if form == 14:
            return f"starts_with({self.expression(TEXT, scope, depth - 1)}, {self.literal(TEXT)})"
        return self.subquery_predicate(scope, kind, depth)

    def comparison(self, scope, depth):
        kind = self.numbers.one([*ORDERED, BOOL])
        operator = self.numbers.one(["=", "<>", "<", ">=", ">", "<=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"])
        return f"({self.expression(kind, scope, depth)} {operator} {self.expression(kind, scope, depth)})"

    def inner(self, scope, depth):
        """The FROM and WHERE of a subquery, mostly one that names the outer columns; and the subquery's own columns."""
        n = self.numbers
        source, inside = self.source(0)
        conditions = []
        pairs = [(a, b) for a, kind in inside for b, other in scope if kind == other and kind != LIST]
        if pairs and n.chance(70):
            conditions.append("{} = {}".format(*n.one(pairs)))
        if n.chance(40):
            conditions.append(self.predicate(inside if n.chance(70) else inside + scope, min(1, depth - 1)))
        return source + (f" WHERE {' AND '.join(conditions)}" if conditions else ""), inside

    def scalar_subquery(self, kind, scope, depth):
        source, inside = self.inner(scope, depth)
        aggregates = [f"{self.numbers.one(['max', 'min'])}({self.expression(kind, inside, 0)})"]
        if kind == INT:
            aggregates += ["count(*)", f"count({self.expression(TEXT, inside, 0)})", f"sum({self.expression(INT, inside, 0)})"]
        return f"(SELECT {self.numbers.one(aggregates)} FROM {source})"

    def subquery_predicate(self, scope, kind, depth):
        n = self.numbers
        source, inside = self.inner(scope, depth)
        form = n.below(4)
        if form < 2:
            return f"({n.one(['', 'NOT '])}EXISTS (SELECT 1 FROM {source}))"
        value, item = self.expression(kind, scope, min(1, depth - 1)), self.expression(kind, inside, 0)
        if form == 2:
            return f"({value} {n.one(['', 'NOT '])}IN (SELECT {item} FROM {source}))"
        quantifier = n.one(["ANY", "ALL"])
        return f"({value} {n.one(['=', '<>', '<', '>='])} {quantifier} (SELECT {item} FROM {source}))"

    def source(self, depth):
        """Something that stands in FROM, and its columns."""
        n = self.numbers
        alias = self.alias()
        if depth > 0 and n.chance(25):
            text, kinds = n.one([self.plain, self.grouped, self.set_operation, self.windowed])(depth - 1)
            columns = [f"x{at}" for at in range(len(kinds))]
            return f"({text}) AS {alias}({', '.join(columns)})", [(f"{alias}.{name}", kind) for name, kind in zip(columns, kinds)]
        table = n.one(self.tables)
        return f"{table.name} AS {alias}", [(f"{alias}.{name}", kind) for name, kind in table.columns]

    def from_clause(self, depth):
        n = self.numbers
        text, scope = self.source(depth)
        for _ in range(n.one([0, 1, 0, 1, 2])):
            other, columns = self.source(depth)
            join = n.one(["JOIN", "LEFT JOIN", "SEMI JOIN", "ANTI JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN"])
            pairs = [(a, b) for a, kind in scope for b, same in columns if kind == same and kind != LIST]
            if join == "CROSS JOIN" or not pairs:
                text, scope = f"{text} CROSS JOIN {other}", scope + columns
                continue
            conditions = ["{} = {}".format(*n.one(pairs))]
            if n.chance(30):
                first, second = n.one(pairs)
                conditions.append(f"{first} {n.one(['=', '<', '<>', 'IS NOT DISTINCT FROM'])} {second}")
            if n.chance(30) and join != "FULL JOIN":
                conditions.append(self.predicate(scope + columns, 0))
            text = f"{text} {join} {other} ON {' AND '.join(conditions)}"
            scope = scope if join in ("SEMI JOIN", "ANTI JOIN") else scope + columns
        return text, scope

    def where(self, scope, depth):
        return f" WHERE {self.predicate(scope, depth)}" if self.numbers.chance(60) else ""

    def items(self, scope, depth, kinds=None):
        kinds = kinds or [self.numbers.one(TYPES) for _ in range(1 + self.numbers.below(3))]
        return [self.expression(kind, scope, depth) for kind in kinds], kinds

    def plain(self, depth, kinds=None):
        n = self.numbers
        source, scope = self.from_clause(depth)
        items, kinds = self.items(scope, depth, kinds)
        text = f"SELECT {n.one(['', '', 'DISTINCT '])}{', '.join(items)} FROM {source}{self.where(scope, depth + 1)}"
        if n.chance(20) and LIST not in kinds:
            # All columns are keys, so that those that are left do not depend on chance.
            keys = [f"{at + 1} {n.one(['ASC', 'DESC'])} NULLS {n.one(['LAST', 'FIRST'])}" for at in range(len(kinds))]
            offset = f" OFFSET {n.below(4)}" if n.chance(30) else ""
            text = f"{text} ORDER BY {', '.join(keys)} LIMIT {1 + n.below(6)}{offset}"
        return text, kinds

    def aggregate(self, scope, depth):
        n = self.numbers
        kind = n.one(ORDERED)
        value = self.expression(kind, scope, depth)
        forms = [("count(*)", INT), (f"count({value})", INT), (f"max({value})", kind), (f"min({value})", kind),
                 (f"count(DISTINCT {value})", INT), (f"sum({self.expression(INT, scope, depth)})", INT),
                 (f"sum({self.expression(DECIMAL, scope, depth)})", DECIMAL), (f"sum(DISTINCT {self.expression(INT, scope, depth)})", INT),
                 (f"avg({self.expression(INT, scope, depth)})", FLOAT), (f"bool_or({self.predicate(scope, 0)})", BOOL),
                 (f"bool_and({self.predicate(scope, 0)})", BOOL), (f"sum({self.expression(FLOAT, scope, 0)})", FLOAT)]
        text, kind = n.one(forms)
        return (f"{text} FILTER (WHERE {self.predicate(scope, 0)})" if n.chance(20) else text), kind

    def grouped(self, depth):
        n = self.numbers
        source, scope = self.from_clause(depth)
        where = self.where(scope, depth + 1)
        kinds = [n.one(ORDERED) for _ in range(n.below(3))]
        keys = [f"k{at}" for at in range(len(kinds))]
        inner, values = self.alias(), [self.expression(kind, scope, depth) for kind in kinds]
        # Keys are columns of a subquery: what is grouped is then not in question.
        columns = [f"{value} AS {key}" for key, value in zip(keys, values)] + [f"{name} AS {name.replace('.', '_')}" for name, _ in scope]
        inside = [(f"{inner}.{name.replace('.', '_')}", kind) for name, kind in scope]
        aggregates = [self.aggregate(inside, min(depth, 1)) for _ in range(1 + n.below(3))]
        items = [f"{inner}.{key}" for key in keys]
        text = f"SELECT {', '.join(items + [text for text, _ in aggregates])} FROM (SELECT {', '.join(columns)} FROM {source}{where}) AS {inner}"
        if items:
            form = n.below(6)
            grouping = {3: f"ROLLUP ({', '.join(items)})", 4: f"CUBE ({', '.join(items)})",
                        5: f"GROUPING SETS (({', '.join(items)}), ({items[0]}), ())"}.get(form, ", ".join(items))
            text = f"{text} GROUP BY {grouping}"
        if items and n.chance(25):
            value, kind = self.aggregate(inside, 0)
            text = f"{text} HAVING {value} {n.one(['=', '<>', '<', '>='])} {self.literal(kind)}"
        return text, kinds + [kind for _, kind in aggregates]

    def windowed(self, depth):
        n = self.numbers
        source, scope = self.from_clause(depth)
        kind = n.one([INT, TEXT, DATE, DECIMAL])
        value = self.expression(kind, scope, depth)
        order = [f"{self.expression(n.one(ORDERED), scope, 0)} {n.one(['ASC', 'DESC'])} NULLS {n.one(['LAST', 'FIRST'])}"]
        # All columns follow: rows that are still equal may change places.
        order += [f"{name} NULLS LAST" for name, other in scope if other != LIST]
        whole = self.expression(INT, scope, depth)
        function, result = n.one([("row_number()", INT), (f"lag({value})", kind), (f"lead({value}, 2)", kind),
                                  (f"sum({whole})", INT), ("count(*)", INT), (f"max({value})", kind), (f"min({value})", kind),
                                  (f"first_value({value})", kind), (f"last_value({value})", kind), ("rank()", INT), ("dense_rank()", INT)])
        frame = ""
        if n.chance(50) and not function.startswith(("row", "lag", "lead", "rank", "dense")):
            frame = " ROWS BETWEEN " + n.one(["1 PRECEDING AND CURRENT ROW", "UNBOUNDED PRECEDING AND 1 FOLLOWING", "2 PRECEDING AND 1 PRECEDING",
                                              "CURRENT ROW AND UNBOUNDED FOLLOWING", "1 FOLLOWING AND 2 FOLLOWING"])
        partition = f"PARTITION BY {self.expression(n.one(ORDERED), scope, 0)} " if n.chance(60) else ""
        items, kinds = self.items(scope, 0)
        text = f"{function} OVER ({partition}ORDER BY {', '.join(order)}{frame})"
        return f"SELECT {', '.join(items)}, {text} FROM {source}{self.where(scope, depth + 1)}", [*kinds, result]

    def set_operation(self, depth):
        n = self.numbers
        left, kinds = self.plain(depth)
        right, _ = self.plain(depth, kinds)
        return f"({left}) {n.one(['UNION ALL', 'UNION', 'INTERSECT', 'EXCEPT', 'INTERSECT ALL', 'EXCEPT ALL'])} ({right})", kinds

    def statement(self):
        """A whole statement."""
        n = self.numbers
        make = n.one([self.plain, self.plain, self.grouped, self.grouped, self.set_operation, self.windowed])
        if not n.chance(20):
            return make(1 + n.below(2))[0]
        text, kinds = n.one([self.plain, self.grouped])(1)
        columns = [(f"x{at}", kind) for at, kind in enumerate(kinds)]
        with_name = self.alias()
        self.tables = [Table(with_name, columns), Table(with_name, columns), *self.tables]
        return f"WITH {with_name}({', '.join(name for name, _ in columns)}) AS ({text}) {make(1)[0]}"
