"""Random SQL of the forms that DuckDB and PostgreSQL document: joins of every kind, set operations, pivots, windows, grouping sets,
subqueries that name any of the queries around them, lists and structures, decimals, times, texts, recursive queries. Each method
of `Forms` whose name is in `FAMILIES` makes a statement over the tables of `TABLES`, of which both engines have the same rows."""

#: The tables, with the values that their columns may have.
WHOLE = ["0", "1", "2", "3", "5", "-1", "7"]
TEXTS = ["'a'", "'b'", "'ab'", "''", "'A'", "'ä'", "'straße'", "'日本'", "'a b'", "'e\u0301'"]
DAYS = [f"DATE '{day}'" for day in ("2024-01-01", "2024-01-02", "2024-01-31", "2024-02-29", "2023-12-31", "1969-07-20")]
INSTANTS = [f"TIMESTAMP '{at}'" for at in ("2024-01-01 00:00:00", "2024-01-01 10:30:00", "2024-01-02 23:59:59.5", "2024-02-29 12:00:00",
                                           "1969-12-31 23:59:59", "2024-03-31 01:30:00")]
CENTS = [f"CAST({value} AS DECIMAL(8,2))" for value in ("1.25", "0", "-2.50", "999.99", "10.00", "0.01")]
THIRDS = [f"CAST({value} AS DECIMAL(6,3))" for value in ("1.250", "0", "-2.500", "12.345", "0.001")]
DOUBLES = ["1.5e0", "0e0", "-2.25e0", "1e3", "0.5e0"]
LISTS = [f"CAST({value} AS BIGINT[])" for value in ("[1, 2, 3]", "[]", "[NULL, 2]", "[3, 1, 2, 2]", "[5]")]
RECORDS = [f"CAST({{'a': {a}, 'b': {b}}} AS STRUCT(a BIGINT, b VARCHAR))" for a, b in (("1", "'x'"), ("2", "'y'"), ("NULL", "'x'"), ("1", "NULL"))]
TABLES = {
    "e": [("k", "INTEGER", WHOLE), ("g", "VARCHAR", TEXTS), ("n", "BIGINT", WHOLE), ("d", "DECIMAL(8,2)", CENTS), ("f", "DOUBLE", DOUBLES),
          ("day", "DATE", DAYS), ("ts", "TIMESTAMP", INSTANTS), ("l", "BIGINT[]", LISTS), ("s", "STRUCT(a BIGINT, b VARCHAR)", RECORDS),
          ("b", "BOOLEAN", ["true", "false"])],
    "u": [("k", "INTEGER", WHOLE), ("g", "VARCHAR", TEXTS), ("m", "BIGINT", WHOLE), ("day", "DATE", DAYS), ("ts", "TIMESTAMP", INSTANTS),
          ("x", "DECIMAL(6,3)", THIRDS), ("w", "VARCHAR", TEXTS)],
    "v": [("k", "INTEGER", WHOLE), ("g", "VARCHAR", TEXTS), ("n", "BIGINT", WHOLE), ("m", "BIGINT", WHOLE)],
}
NUMBERS, STRINGS = {"e": ["id", "k", "n"], "u": ["id", "k", "m"], "v": ["id", "k", "n", "m"]}, {"e": ["g"], "u": ["g", "w"], "v": ["g"]}
FAMILIES = ["joins", "laterals", "asof", "sets", "pivots", "unpivots", "windows", "qualified", "first_rows", "groups", "ordered_aggregates",
            "correlated", "correlated", "nested_values", "lambdas", "structures", "decimals", "mixed_types", "dates", "intervals", "texts",
            "limits", "recursion", "named_queries", "star_forms"]


def random_rows(numbers, name):
    """Rows of a table as SQL values; the first column is `id`, which no two share."""
    nulls = numbers.one([0, 15, 40])
    rows = []
    for row in range(numbers.one([0, 1, 4, 9, 14])):
        rows.append([str(row + 1), *("NULL" if numbers.chance(nulls) else numbers.one(values) for _, _, values in TABLES[name])])
    return rows


def definition(name):
    """The columns of a table as CREATE TABLE has them."""
    return ", ".join(["id BIGINT", *(f"{column} {kind}" for column, kind, _ in TABLES[name])])


class Forms:
    """Makes a statement."""

    def __init__(self, numbers):
        self.n = numbers
        self.aliases = 0

    def statement(self):
        return getattr(self, self.n.one(FAMILIES))()

    def alias(self):
        self.aliases += 1
        return f"t{self.aliases}"

    def table(self, among="euv"):
        name = self.n.one(list(among))
        return name, self.alias()

    # Small parts.

    def number(self, scope, depth=1):
        """A whole number over aliases of tables, `scope`: (table, alias)."""
        n = self.n
        form = n.below(9) if depth > 0 else 0
        if form <= 3:
            table, alias = n.one(scope)
            return f"{alias}.{n.one(NUMBERS[table])}"
        again = lambda: self.number(scope, depth - 1)  # noqa: E731
        return n.one([lambda: f"({again()} + {again()})", lambda: f"coalesce({again()}, {n.one(WHOLE)})", lambda: n.one(WHOLE),
                      lambda: f"(CASE WHEN {self.condition(scope, depth - 1)} THEN {again()} ELSE {again()} END)",
                      lambda: f"nullif({again()}, {n.one(WHOLE)})", lambda: f"abs({again()})", lambda: f"greatest({again()}, {again()})",
                      lambda: f"length({self.text(scope)})"])()

    def text(self, scope):
        table, alias = self.n.one(scope)
        return f"{alias}.{self.n.one(STRINGS[table])}"

    def condition(self, scope, depth=1):
        n = self.n
        compared = lambda: f"{self.number(scope, 0)} {n.one(['=', '<', '>=', '<>'])} {self.number(scope, depth)}"  # noqa: E731
        form = n.below(9)
        if form <= 3 or depth <= 0:
            return f"({compared()})"
        again = lambda: self.condition(scope, depth - 1)  # noqa: E731
        return n.one([lambda: f"({again()} AND {again()})", lambda: f"({again()} OR {again()})", lambda: f"(NOT {again()})",
                      lambda: f"({self.text(scope)} {n.one(['=', '<', '>', '<>'])} {n.one(TEXTS)})",
                      lambda: f"({self.number(scope, 0)} IS {n.one(['', 'NOT '])}NULL)",
                      lambda: f"({self.number(scope, 0)} {n.one(['', 'NOT '])}IN ({n.one(WHOLE)}, {self.number(scope, 0)}))",
                      lambda: f"({self.number(scope, 0)} IS {n.one(['', 'NOT '])}DISTINCT FROM {self.number(scope, 0)})"])()

    def where(self, scope):
        return f" WHERE {self.condition(scope, 2)}" if self.n.chance(40) else ""

    # Families.

    def joins(self):
        n = self.n
        table, alias = self.table()
        source, scope = f"{table} {alias}", [(table, alias)]
        using = n.chance(50)
        merged = []
        for _ in range(1 + n.below(3)):
            other, name = self.table()
            join = n.one(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN", "LEFT JOIN"])
            if using:
                shared = n.one(["k", "g", "k, g"])
                if merged and shared != merged[0]:
                    shared = merged[0]
                if len(scope) > 1 and not merged:
                    break
                merged = [shared]
                source += f" {join} {other} {name} USING ({shared})"
            else:
                conditions = [f"{n.one(scope)[1]}.{n.one(['k', 'k', 'g'])} = {name}.{n.one(['k', 'k', 'g'])}"]
                left, right = conditions[0].split(" = ")
                if left.split(".")[1] != right.split(".")[1]:
                    conditions = [f"{left} = {name}.{left.split('.')[1]}"]
                if n.chance(40):
                    conditions.append(self.condition([*scope, (other, name)], 1))
                source += f" {join} {other} {name} ON {' AND '.join(conditions)}"
            if join not in ("SEMI JOIN", "ANTI JOIN"):
                scope.append((other, name))
        if using:
            items = [merged[0], *(f"{alias}.id" for _, alias in scope), *(f"{alias}.{merged[0].split(',')[0]}" for _, alias in scope)]
            if n.chance(30):
                return f"SELECT * FROM {source}" if len(scope) == 1 else f"SELECT {merged[0]}, count(*), sum({scope[-1][1]}.id) FROM {source} GROUP BY {merged[0]}"
        else:
            items = [f"{alias}.id" for _, alias in scope] + [self.number(scope, 1)]
        return f"SELECT {', '.join(items)} FROM {source}{self.where(scope)}"

    def laterals(self):
        n = self.n
        outer, a = self.table()
        inner, b = self.table()
        scope, both = [(outer, a)], [(outer, a), (inner, b)]
        link = f"{b}.k {n.one(['=', '=', '<', '<>'])} {a}.k"
        form = n.below(6)
        if form == 0:
            query = f"SELECT {self.number(both)} AS y, {b}.id AS z FROM {inner} {b} WHERE {link} ORDER BY {b}.id {n.one(['', 'DESC'])} LIMIT {1 + n.below(2)}"
        elif form == 1:
            query = f"SELECT {n.one(['count(*)', 'sum', 'max', 'min', 'count'])} AS y, 1 AS z FROM {inner} {b} WHERE {link}"
            query = query.replace("sum AS", f"sum({b}.id) AS").replace("max AS", f"max({b}.id) AS").replace("min AS", f"min({b}.id) AS").replace("count AS", f"count({b}.k) AS")
        elif form == 2:
            query = f"SELECT {b}.g AS y, count(*) AS z FROM {inner} {b} WHERE {link} GROUP BY {b}.g"
        elif form == 3:
            query = f"SELECT {self.number(scope)} AS y, {self.number(scope)} AS z"
        elif form == 4:
            query = f"SELECT DISTINCT {b}.n AS y, {a}.id AS z FROM v {b} WHERE {link}"
        else:
            query = f"SELECT {b}.id AS y, row_number() OVER (ORDER BY {b}.id) AS z FROM {inner} {b} WHERE {link}"
        join = n.one([f", LATERAL ({query}) q", f" JOIN LATERAL ({query}) q ON true", f" LEFT JOIN LATERAL ({query}) q ON true",
                      f" LEFT JOIN LATERAL ({query}) q ON q.y > 1"])
        return f"SELECT {a}.id, q.y, q.z FROM {outer} {a}{join}{self.where(scope)}"

    def asof(self):
        n = self.n
        left, right = n.one(["e", "u"]), n.one(["e", "u"])
        at = n.one(["ts", "ts", "day", "id"])
        equal = n.one(["", "a.k = b.k AND ", "a.g = b.g AND "])
        # Of rows of one time DuckDB takes any: one stays for each.
        keys = {"": "", "a.k = b.k AND ": "k, ", "a.g = b.g AND ": "g, "}[equal] + at
        unique = f"(SELECT {keys}, max(id) AS id FROM {right} GROUP BY {keys})"
        join = n.one(["ASOF JOIN", "ASOF LEFT JOIN"])
        return f"SELECT a.id, b.id, b.{at} FROM {left} a {join} {unique} b ON {equal}a.{at} {n.one(['>=', '>', '<=', '<'])} b.{at}"

    def sets(self):
        n = self.n

        def branch(depth):
            if depth > 0 and n.chance(60):
                by_name = n.chance(25)
                op = "UNION" + n.one([" ALL", ""]) + " BY NAME" if by_name else n.one(["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL"])
                left, right = branch(depth - 1), branch(depth - 1)
                return f"({left}) {op} ({right})" if n.chance(70) else f"SELECT * FROM ({left}) q{self.alias()} {op} SELECT * FROM ({right}) q{self.alias()}"
            table, alias = self.table()
            scope = [(table, alias)]
            number = n.one([f"{alias}.k", f"{alias}.id", "NULL", n.one(WHOLE)])
            text = n.one([self.text(scope), "NULL", n.one(TEXTS)])
            tail = f" ORDER BY {alias}.id LIMIT {1 + n.below(4)}" if n.chance(20) else ""
            return f"SELECT {n.one(['', 'DISTINCT ']) if not tail else ''}{number} AS a, {text} AS c FROM {table} {alias}{self.where(scope)}{tail}"

        query = branch(2)
        form = n.below(4)
        if form == 0:
            return f"SELECT a, count(*), min(c) FROM ({query}) q GROUP BY a"
        if form == 1:
            return f"SELECT * FROM ({query}) q WHERE a {n.one(['>', '=', '<>'])} {n.one(WHOLE)} OR c IS NULL"
        if form == 2:
            return f"SELECT a + 1, upper(c) FROM ({query}) q ORDER BY a NULLS FIRST, c NULLS LAST LIMIT 5"
        return query

    def pivots(self):
        n = self.n
        value = n.one(["sum(n)", "count(*)", "max(d)", "min(n)", "sum(n) AS total", "count(n) AS c, max(k) AS m", "avg(n)"])
        keys = n.one(["1", "2", "0, 1, 2", "3, 7"])
        source = n.one(["e", "(SELECT k, g, n, d FROM e)", "(SELECT k, g, n, d FROM e WHERE n > 0)"])
        if n.chance(50):
            group = n.one([" GROUP BY g", " GROUP BY g", " GROUP BY b", ""]) if source == "e" else n.one([" GROUP BY g", ""])
            return f"SELECT * FROM (PIVOT {source} ON k IN ({keys}) USING {value}{group})"
        picked = "(SELECT k, g, n, d FROM e)"
        return f"SELECT * FROM {picked} PIVOT ({value} FOR k IN ({keys}){n.one(['', ' GROUP BY g'])})"

    def unpivots(self):
        n = self.n
        nulls = n.one(["", "", " INCLUDE NULLS"])
        if n.chance(50):
            return f"SELECT id, name, value FROM (UNPIVOT{nulls and ''} (SELECT id, k::BIGINT AS k, n FROM e) ON k, n INTO NAME name VALUE value)"
        return f"SELECT * FROM (SELECT id, k::BIGINT AS k, n FROM e) UNPIVOT{nulls} (value FOR name IN (k, n))"

    def window(self, alias, table):
        n = self.n
        form = n.below(6)
        keys = [f"{alias}.id"]
        partition = n.one(["", f"PARTITION BY {alias}.k ", f"PARTITION BY {alias}.g "])
        if form == 0:
            bound = n.one(["1 PRECEDING AND CURRENT ROW", "1 PRECEDING AND 1 FOLLOWING", "UNBOUNDED PRECEDING AND CURRENT ROW", "CURRENT ROW AND 2 FOLLOWING",
                           "CURRENT ROW AND UNBOUNDED FOLLOWING", "2 PRECEDING AND 1 PRECEDING"])
            return f"{partition}ORDER BY {alias}.{n.one(['id', 'k'])} {n.one(['ASC', 'DESC'])} NULLS {n.one(['FIRST', 'LAST'])} RANGE BETWEEN {bound}"
        if form == 1 and table in ("e", "u"):
            bound = n.one(["INTERVAL '1 day' PRECEDING AND CURRENT ROW", "INTERVAL '1 month' PRECEDING AND INTERVAL '1 day' FOLLOWING",
                           "CURRENT ROW AND INTERVAL '12 hours' FOLLOWING", "INTERVAL '2 days' PRECEDING AND INTERVAL '2 days' FOLLOWING"])
            return f"{partition}ORDER BY {alias}.{n.one(['ts', 'day'])} {n.one(['ASC', 'DESC'])} NULLS {n.one(['FIRST', 'LAST'])} RANGE BETWEEN {bound}"
        if form == 2:
            bound = n.one(["1 PRECEDING AND CURRENT ROW", "CURRENT ROW AND 1 FOLLOWING", "UNBOUNDED PRECEDING AND 1 FOLLOWING", "1 PRECEDING AND 1 PRECEDING",
                           "1 FOLLOWING AND 2 FOLLOWING"])
            return f"{partition}ORDER BY {alias}.{n.one(['k', 'g', 'id'])} {n.one(['ASC', 'DESC'])} NULLS {n.one(['FIRST', 'LAST'])} GROUPS BETWEEN {bound}"
        if form == 3:
            bound = n.one(["1 PRECEDING AND CURRENT ROW", "2 PRECEDING AND 1 PRECEDING", "1 FOLLOWING AND 3 FOLLOWING", "UNBOUNDED PRECEDING AND 1 PRECEDING"])
            return f"{partition}ORDER BY {alias}.k NULLS FIRST, {alias}.id DESC ROWS BETWEEN {bound}"
        if form == 4:
            return partition
        return f"{partition}ORDER BY {n.one(['', alias + '.k DESC NULLS LAST, '])}{keys[0]}"

    def windows(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        over = self.window(alias, table)
        value = self.number(scope, 1)
        functions = [f"sum({value})", "count(*)", f"count({value})", f"min({value})", f"max({value})", f"avg({value})", f"sum({value}) FILTER (WHERE {self.condition(scope, 1)})",
                     f"count(DISTINCT {alias}.k)", f"min({self.text(scope)})", f"bool_or({self.condition(scope, 0)})"]
        ordered = "ORDER BY" in over
        if ordered and "RANGE" not in over and "GROUPS" not in over:
            functions += [f"first_value({value})", f"last_value({value})", f"nth_value({value}, 2)", f"list({alias}.id)", f"string_agg({self.text(scope)}, ',')",
                          f"first_value({value} IGNORE NULLS)", f"last_value({value} IGNORE NULLS)"]
        if ordered and "BETWEEN" not in over:
            functions += ["row_number()", f"lag({value})", f"lead({value}, 1, 0)", "ntile(3)", "rank()", "dense_rank()", "percent_rank()", "cume_dist()", f"lag({value} IGNORE NULLS)"]
        function = n.one(functions)
        call = f"{function} OVER ({over})"
        if n.chance(25):
            return f"SELECT {alias}.id, {function} OVER w, count(*) OVER w FROM {table} {alias}{self.where(scope)} WINDOW w AS ({over})"
        if n.chance(20):
            return f"SELECT {alias}.id, {call} + {self.number(scope, 0)} FROM {table} {alias}{self.where(scope)}" if function.startswith(("count", "row", "rank")) else f"SELECT {alias}.id, {call} FROM {table} {alias}{self.where(scope)}"
        if n.chance(20):
            return f"SELECT k, count(*), sum(count(*)) OVER (ORDER BY k NULLS FIRST), rank() OVER (ORDER BY count(*) DESC) FROM {table} {alias}{self.where(scope)} GROUP BY k"
        return f"SELECT {alias}.id, {call} FROM {table} {alias}{self.where(scope)}"

    def qualified(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        rank = n.one(["row_number()", "rank()", "dense_rank()", "count(*)"])
        over = f"{n.one(['', f'PARTITION BY {alias}.k '])}ORDER BY {alias}.{n.one(['id', 'g'])} {n.one(['', 'DESC '])}NULLS LAST"
        if rank == "row_number()":
            over += f", {alias}.id"
        condition = n.one([f"{rank} OVER ({over}) <= 2", f"r = 1", f"r > 1 AND {self.condition(scope, 0)}", f"{rank} OVER ({over}) = {alias}.k"])
        return f"SELECT {alias}.id, {rank} OVER ({over}) AS r FROM {table} {alias}{self.where(scope)} QUALIFY {condition}"

    def first_rows(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        on = n.one([f"{alias}.k", f"{alias}.g", f"{alias}.k, {alias}.g", f"{self.number(scope, 1)}"])
        order = n.one([f"{alias}.id DESC", f"{alias}.k NULLS FIRST, {alias}.id", f"{alias}.g DESC NULLS LAST, {alias}.id"])
        query = f"SELECT DISTINCT ON ({on}) {alias}.id, {alias}.k FROM {table} {alias}{self.where(scope)} ORDER BY {order}"
        return n.one([query, f"SELECT count(*), sum(id) FROM ({query}) q", f"{query} LIMIT 2"])

    def groups(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        keys = [f"{alias}.k", f"{alias}.g", f"{alias}.id % 2"][: 1 + n.below(3)]
        listed = ", ".join(keys)
        grouping = n.one([listed, f"ROLLUP ({listed})", f"CUBE ({listed})", f"GROUPING SETS (({listed}), ({keys[0]}), ())", f"GROUPING SETS (({keys[-1]}), ({keys[0]}))",
                          f"{keys[0]}, ROLLUP ({listed})" if len(keys) > 1 else listed, f"GROUPING SETS (ROLLUP ({listed}), ({keys[-1]}))"])
        value = self.number(scope, 1)
        aggregates = n.one([f"sum({value})", "count(*)", f"count(DISTINCT {value})", f"min({self.text(scope)}), max({value})", f"avg({value})",
                            f"sum({value}) FILTER (WHERE {self.condition(scope, 0)})", f"bool_and({self.condition(scope, 1)})", f"sum(DISTINCT {value}), count(*)"])
        having = n.one(["", "", f" HAVING count(*) > {n.below(3)}", f" HAVING sum({value}) > {n.one(WHOLE)} OR max({alias}.id) IS NULL", f" HAVING {keys[0]} IS NOT NULL"])
        extra = f", grouping({keys[0]})" if grouping.startswith(("ROLLUP", "CUBE", "GROUPING")) and n.chance(50) else ""
        if n.chance(20):
            query = f"SELECT {listed}, {aggregates}{extra} FROM {table} {alias}{self.where(scope)} GROUP BY {grouping}{having}"
            return f"SELECT count(*) FROM ({query}) q"
        return f"SELECT {listed}, {aggregates}{extra} FROM {table} {alias}{self.where(scope)} GROUP BY {grouping}{having}"

    def ordered_aggregates(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        order = n.one([f"{alias}.id", f"{alias}.id DESC", f"{alias}.k NULLS FIRST, {alias}.id", f"{alias}.g DESC NULLS LAST, {alias}.id DESC"])
        value = self.number(scope, 1)
        aggregate = n.one([f"list({value} ORDER BY {order})", f"string_agg({self.text(scope)}, '-' ORDER BY {order})", f"first({value} ORDER BY {order})", f"last({value} ORDER BY {order})",
                           f"list({alias}.id ORDER BY {order}) FILTER (WHERE {self.condition(scope, 0)})", f"arg_max({alias}.id, {alias}.id)", f"arg_min({alias}.g, {alias}.id)",
                           f"list(DISTINCT {alias}.k ORDER BY {alias}.k NULLS LAST)", f"median({value})", f"quantile_cont({value}, 0.25)", f"quantile_disc({alias}.id, 0.5)",
                           f"array_agg({self.text(scope)} ORDER BY {order})", f"histogram({alias}.k)::VARCHAR", f"count_if({self.condition(scope, 0)})",
                           f"any_value({alias}.k) IS NULL", f"product({alias}.id % 3)", f"max({alias}.id, 2)::VARCHAR", f"bit_xor({alias}.id)", f"stddev({alias}.id)", f"var_pop({alias}.id)"])
        group = n.one(["", f"{alias}.k", f"{alias}.g"])
        return f"SELECT {group + ', ' if group else ''}{aggregate} FROM {table} {alias}{self.where(scope)}{' GROUP BY ' + group if group else ''}"

    def subquery(self, scope, depth):
        """A scalar subquery that may name any of the tables around it."""
        n = self.n
        table, alias = self.table()
        inside = [(table, alias), *scope]
        conditions = []
        if n.chance(75):
            other = n.one(scope)
            column = n.one(["k", "k", "g"])
            conditions.append(f"{alias}.{column} {n.one(['=', '=', '=', '<', '<>'] if column == 'k' else ['=', '=', '<'])} {other[1]}.{column}")
        if n.chance(35):
            conditions.append(self.condition(inside if n.chance(50) else inside[:1], 1))
        if depth > 0 and n.chance(60):
            conditions.append(self.predicate(inside, depth - 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        value = self.number(inside[:1], 1) if n.chance(80) else self.number(inside[:1], 0)
        aggregate = n.one(["count(*)", f"sum({value})", f"max({value})", f"min({value})", f"count({value})", f"count(DISTINCT {value})", f"coalesce(sum({value}), 0)", f"max({value}) + count(*)"])
        if n.chance(15):
            return f"(SELECT {value} FROM {table} {alias}{where} ORDER BY {alias}.id LIMIT 1)"
        return f"(SELECT {aggregate} FROM {table} {alias}{where})"

    def predicate(self, scope, depth):
        n = self.n
        form = n.below(5)
        if form <= 1:
            return f"({self.number(scope, 0)} {n.one(['=', '<', '>=', '<>'])} {self.subquery(scope, depth)})"
        table, alias = self.table()
        inside = [(table, alias), *scope]
        conditions = []
        if n.chance(75):
            other = n.one(scope)
            conditions.append(f"{alias}.k {n.one(['=', '=', '<', '<>'])} {other[1]}.k")
        if n.chance(30):
            conditions.append(self.condition(inside, 1))
        if depth > 0 and n.chance(50):
            conditions.append(self.predicate(inside, depth - 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if form == 2:
            return f"({n.one(['', 'NOT '])}EXISTS (SELECT 1 FROM {table} {alias}{where}))"
        if form == 3:
            return f"({self.number(scope, 0)} {n.one(['', 'NOT '])}IN (SELECT {self.number(inside[:1], 0)} FROM {table} {alias}{where}))"
        return f"({self.number(scope, 0)} {n.one(['=', '<>', '<', '>='])} {n.one(['ANY', 'ALL'])} (SELECT {self.number(inside[:1], 0)} FROM {table} {alias}{where}))"

    def correlated(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        source = f"{table} {alias}"
        if n.chance(30):
            other, name = self.table()
            source += f" {n.one(['JOIN', 'LEFT JOIN'])} {other} {name} ON {name}.k = {alias}.k"
            scope.append((other, name))
        depth = n.below(3)
        ids = ", ".join(f"{name}.id" for _, name in scope)
        form = n.below(7)
        if form <= 1:
            return f"SELECT {ids} FROM {source} WHERE {self.predicate(scope, depth)}"
        if form == 2:
            return f"SELECT {ids}, {self.subquery(scope, depth)} FROM {source}{self.where(scope)}"
        if form == 3:
            return f"SELECT {ids}, CASE WHEN {self.predicate(scope, depth)} THEN {self.subquery(scope, 0)} ELSE {self.number(scope, 0)} END FROM {source}"
        if form == 4:
            return f"SELECT {alias}.k, count(*) FROM {source} WHERE {self.predicate(scope, depth)} {n.one(['AND', 'OR'])} {self.condition(scope, 0)} GROUP BY {alias}.k"
        if form == 5:
            return f"SELECT {alias}.k, sum({self.subquery(scope, depth)}) FROM {source} GROUP BY {alias}.k"
        return f"SELECT {alias}.k, count(*) FROM {source} GROUP BY {alias}.k HAVING count(*) {n.one(['>', '=', '<'])} (SELECT count(*) FROM v x WHERE x.k = {alias}.k)"

    def list_value(self, depth=1):
        n = self.n
        form = n.below(12) if depth > 0 else 0
        if form <= 3:
            return n.one(["l", "l", "[k, n]", "[n]", "[id, n, k]"])
        again = lambda: self.list_value(depth - 1)  # noqa: E731
        return n.one([lambda: f"list_sort({again()})", lambda: f"list_reverse({again()})", lambda: f"list_concat({again()}, {again()})", lambda: f"list_slice({again()}, {n.one(['1', '2', '-1', '0'])}, {n.one(['1', '2', '-1', '5'])})",
                      lambda: f"({again()})[{n.one(['1', '2', '-2'])}:{n.one(['2', '-1', '3'])}]", lambda: f"list_filter({again()}, x -> x > {n.one(WHOLE)})",
                      lambda: f"list_transform({again()}, x -> x * 2 + {n.one(['k', 'id', '1'])})", lambda: f"list_append({again()}, {n.one(['k', 'n', 'NULL'])})",
                      lambda: f"list_prepend({n.one(['k', 'n'])}, {again()})", lambda: f"list_resize({again()}, {n.below(4)})", lambda: f"[x + 1 FOR x IN {again()} IF x IS NOT NULL]",
                      lambda: f"list_sort(list_distinct({again()}))", lambda: f"list_intersect({again()}, [1, 2, 3]).list_sort()", lambda: f"list_sort({again()}, 'DESC', 'NULLS FIRST')"])()

    def nested_values(self):
        n = self.n
        value = self.list_value(2)
        outer = n.one([value, f"len({value})", f"list_sum({value})", f"list_max({value})", f"list_contains({value}, {n.one(WHOLE)})", f"({value})[{n.one(['1', '-1', '2', '0', '9'])}]", f"list_position({value}, {n.one(WHOLE)})",
                       f"list_unique({value})", f"list_avg({value})", f"array_to_string({value}, '|')", f"({value})::VARCHAR", f"list_has_any({value}, [1, 2])", f"list_has_all({value}, [1])",
                       f"{value} = l", f"{value} < [2]", f"list_aggregate({value}, 'count')", f"list_reduce({value}, (a, b) -> a + b)" if False else f"list_min({value})", f"list_product({value})", f"list_median({value})"])
        form = n.below(5)
        if form == 0:
            return f"SELECT id, unnest({value}) FROM e"
        if form == 1:
            return f"SELECT {value} AS q, count(*) FROM e GROUP BY q"
        if form == 2:
            return f"SELECT id FROM e WHERE {n.one([f'len({value}) > 1', f'list_contains({value}, {n.one(WHOLE)})', f'{value} = [1, 2, 3]'])}"
        return f"SELECT id, {outer} FROM e"

    def lambdas(self):
        n = self.n
        body = n.one(["x + 1", "x * k", "CASE WHEN x > 1 THEN x ELSE n END", "coalesce(x, 0)", "x IS NULL", "x::VARCHAR || g", "[x, k]", "{'v': x}", "x > (k)", "list_sum([x, n])", "x % 2", "length(g) + x"])
        return n.one([lambda: f"SELECT id, list_transform(l, x -> {body}) FROM e", lambda: f"SELECT id, list_filter(l, x -> {n.one(['x > 1', 'x IS NOT NULL', 'x = k', 'x IN (1, 2)', 'x > 1 AND b'])}) FROM e",
                      lambda: f"SELECT id, list_transform(l, (x, i) -> {n.one(['x * i', 'i', 'x + i + k'])}) FROM e", lambda: f"SELECT id, list_reduce(l, (x, y) -> {n.one(['x + y', 'greatest(x, y)', 'x * 10 + y'])}, 0) FROM e WHERE len(l) > 0",
                      lambda: f"SELECT id, [{body} FOR x IN l IF {n.one(['x > 1', 'x IS NOT NULL', 'true'])}] FROM e", lambda: f"SELECT id, list_transform(list_filter(l, x -> x > 1), y -> y + k) FROM e",
                      lambda: f"SELECT id, list_transform([l, [1, NULL]], x -> list_transform(x, y -> y + k)) FROM e", lambda: f"SELECT id, list_sum(list_transform(l, x -> x * 2)) FROM e"])()

    def structures(self):
        n = self.n
        return n.one([lambda: f"SELECT id, s.{n.one('ab')}, s['a'], struct_extract(s, 'b') FROM e", lambda: f"SELECT s, count(*) FROM e GROUP BY s", lambda: "SELECT s.b, max(s.a), count(s.a) FROM e GROUP BY s.b",
                      lambda: f"SELECT a.id, b.id FROM e a JOIN e b ON a.s {n.one(['=', '=', 'IS NOT DISTINCT FROM'])} b.s", lambda: f"SELECT id, s {n.one(['=', '<', '>', '<>', '>='])} {n.one(RECORDS)} FROM e",
                      lambda: "SELECT id, {'p': k, 'q': [n, k], 'r': s} FROM e", lambda: "SELECT id, ({'p': {'q': n}}).p.q + 1 FROM e", lambda: "SELECT DISTINCT s FROM e", lambda: "SELECT min(s), max(s) FROM e",
                      lambda: "SELECT id, struct_insert(s, c := k).c FROM e", lambda: "SELECT id, map([k], [g])[k] FROM e WHERE k IS NOT NULL", lambda: "SELECT id, map_keys(map([k, k + 1], [g, 'z'])), cardinality(map([k], [n])) FROM e WHERE k IS NOT NULL",
                      lambda: "SELECT id, map_values(map {'a': n, 'b': k}) FROM e", lambda: "SELECT id, s.* FROM e", lambda: "SELECT id, row(k, g)::VARCHAR, s::VARCHAR FROM e", lambda: "SELECT count(DISTINCT s), count(DISTINCT l) FROM e",
                      lambda: "SELECT id, unnest(s) FROM e", lambda: "SELECT list(s ORDER BY id)::VARCHAR FROM e", lambda: "SELECT id, list_transform([s], x -> x.a) FROM e", lambda: "SELECT s FROM e ORDER BY s NULLS FIRST, id LIMIT 4",
                      lambda: "SELECT l, count(*) FROM e GROUP BY l", lambda: f"SELECT a.id, b.id FROM e a JOIN e b ON a.l = b.l", lambda: f"SELECT id, l {n.one(['=', '<', '>', '<>'])} {n.one(LISTS)} FROM e", lambda: "SELECT id FROM e WHERE s IN (SELECT s FROM e WHERE k > 0)",
                      lambda: "SELECT id FROM e WHERE l NOT IN (SELECT l FROM e WHERE k > 1 AND l IS NOT NULL)", lambda: "SELECT id, coalesce(s, {'a': 9, 'b': 'z'}).a FROM e", lambda: "SELECT id, CASE WHEN k > 1 THEN s ELSE {'a': 0, 'b': g} END FROM e"])()

    def decimals(self):
        n = self.n
        small = lambda: n.one(["d", "x", "1.5", "0.125", "100", "-3.75", "k", "m"])  # noqa: E731
        first, second = small(), small()
        expression = n.one([f"{first} + {second}", f"{first} - {second}", f"{first} * {second}", f"round({first}, 1)", f"round({first})", f"floor({first})", f"ceil({first})", f"abs({first})", f"CAST({first} AS DECIMAL(12,1))",
                            f"CAST({first} AS INTEGER)", f"CAST({first} AS VARCHAR)", f"{first} = {second}", f"{first} < {second}", f"greatest({first}, {second})", f"coalesce({first}, {second})",
                            f"CASE WHEN k > 1 THEN {first} ELSE {second} END", f"sign({first})", f"-({first})", f"{first} / nullif({second}, 0)", f"{first} IN ({second}, 1.25)", f"{first} BETWEEN {second} AND 10", f"nullif({first}, {second})",
                            f"trunc({first})", f"{first} + {second} * 2", f"{first}::DOUBLE + {second}"])
        if n.chance(35):
            return f"SELECT k, {n.one(['sum', 'min', 'max', 'avg', 'count'])}({n.one(['d', 'x', 'd * 2', 'd + x', 'd * x', '-d'])}), sum(d) / count(*) FROM e JOIN u USING (k) GROUP BY k"
        return f"SELECT e.id, u.id, {expression} FROM e JOIN u USING (k)"

    def mixed_types(self):
        n = self.n
        values = ["k", "n", "d", "f", "1", "1.5", "2e0", "NULL", "k::SMALLINT", "n::DECIMAL(18,0)", "CAST(1 AS TINYINT)", "'7'::INTEGER", "b::INTEGER", "f::FLOAT"]
        a, b, c = n.one(values), n.one(values), n.one(values)
        expression = n.one([f"coalesce({a}, {b}, {c})", f"CASE WHEN b THEN {a} WHEN k > 1 THEN {b} ELSE {c} END", f"CASE {a} WHEN {b} THEN 1 WHEN {c} THEN 2 ELSE 3 END", f"nullif({a}, {b})", f"greatest({a}, {b}, {c})", f"least({a}, {b})",
                            f"{a} = {b}", f"{a} < {b}", f"{a} + {b}", f"{a} * {b}", f"{a} IN ({b}, {c})", f"{a} BETWEEN {b} AND {c}", f"[{a}, {b}]", f"if(b, {a}, {b})", f"{a} IS DISTINCT FROM {b}", f"ifnull({a}, {b})", f"{a} - {b} + {c}",
                            f"({a})::VARCHAR = '1'", f"CASE WHEN b THEN {a} END", f"{a} % 2"])
        if n.chance(20):
            return f"SELECT {a} AS q FROM e UNION {n.one(['', 'ALL '])}SELECT {b} FROM e"
        return f"SELECT id, {expression} FROM e"

    def dates(self):
        n = self.n
        day, at = "day", "ts"
        part = n.one(["year", "month", "day", "hour", "minute", "quarter", "week", "dow", "isodow", "doy", "epoch", "decade", "century", "isoyear", "second", "millisecond"])
        unit = n.one(["year", "month", "day", "hour", "minute", "quarter", "week"])
        expression = n.one([f"date_part('{part}', {n.one([day, at])})", f"extract({part} FROM {at})", f"date_trunc('{unit}', {n.one([at, day])})", f"date_diff('{unit}', {day}, DATE '2024-02-15')", f"date_sub('{unit}', {day}, DATE '2024-02-15')",
                            f"{day} + {n.one(['1', 'k', '30'])}", f"{day} - DATE '2024-01-01'", f"{at} - TIMESTAMP '2024-01-01'", f"{at} + INTERVAL '1 month'", f"{at} - INTERVAL '1 day 2 hours'", f"last_day({day})", f"dayname({day})", f"monthname({at})",
                            f"strftime({at}, '{n.one(['%Y-%m-%d', '%d.%m.%y %H:%M', '%j %U', '%b %a', '%I %p', '%-d/%-m'])}')", f"{day} < {at}", f"{at}::DATE = {day}", f"{day}::TIMESTAMP", f"{day}::VARCHAR", f"{at}::VARCHAR", f"epoch({at})", f"make_date(2024, 1 + (abs(k) % 12)::INTEGER, 1)",
                            f"age({at}, TIMESTAMP '2024-01-01')", f"{at} AT TIME ZONE 'Europe/Berlin'", f"({at} AT TIME ZONE 'America/New_York')::VARCHAR", f"({at}::TIMESTAMPTZ AT TIME ZONE 'Asia/Kolkata')", f"time_bucket(INTERVAL '{n.one(['7 days', '1 month', '6 hours'])}', {n.one([at, day])})",
                            f"{at}::TIME", f"date_part('epoch', {at} - TIMESTAMP '2024-01-01')", f"greatest({day}, DATE '2024-01-15')", f"{at} BETWEEN DATE '2024-01-01' AND DATE '2024-01-31'", f"julian({day})", f"yearweek({day})", f"datediff('{unit}', {at}, TIMESTAMP '2024-03-01 12:00:00')",
                            f"{day} + INTERVAL (k) DAY", f"CASE WHEN k > 1 THEN {day} ELSE {at} END", f"coalesce({at}, {day})"])
        if "AT TIME" in expression or " - " in expression or "+" in expression or "age" in expression or "time_bucket" in expression:
            expression = f"({expression})::VARCHAR" if n.chance(50) and "+" not in expression else expression
        if expression.startswith("age") or (expression.startswith("ts - TIMESTAMP")):
            expression = f"({expression})::VARCHAR"
        table = n.one(["e", "u"])
        if n.chance(15):
            return f"SELECT date_trunc('{unit}', ts) AS q, count(*), min(day) FROM {table} GROUP BY q"
        return f"SELECT id, {expression} FROM {table}"

    def intervals(self):
        n = self.n
        one = lambda: n.one(["INTERVAL '1 month'", "INTERVAL '30 days'", "INTERVAL '1 day 02:00:00'", "INTERVAL '26 hours'", "INTERVAL '-1 day'", "INTERVAL (k) HOUR", "INTERVAL '1 year 2 months'", "(ts - TIMESTAMP '2024-01-01')", "to_days(k)", "to_minutes(n)"])  # noqa: E731
        return f"SELECT id, {n.one([f'({one()} + {one()})::VARCHAR', f'({one()} - {one()})::VARCHAR', f'({one()} * 2)::VARCHAR', f'{one()} < {one()}', f'{one()} = {one()}', f'epoch({one()})', f'extract(hour FROM {one()})', f'extract(day FROM {one()})', f'(-{one()})::VARCHAR', f'ts + {one()}', f'ts - {one()} > day'])} FROM e"

    def texts(self):
        n = self.n
        g = lambda: n.one(["g", "g", "w", n.one(TEXTS), "g || w", "upper(g)", "'Ünïcödé ' || g"])  # noqa: E731
        k = lambda: n.one(["1", "2", "-1", "0", "3", "k"])  # noqa: E731
        a, b = g(), g()
        expression = n.one([f"upper({a})", f"lower({a})", f"length({a})", f"substring({a}, {n.one(['1', '2', '3'])}, {n.one(['1', '2'])})", f"left({a}, {k()})", f"right({a}, {k()})", f"reverse({a})", f"position({b} IN {a})", f"strpos({a}, {b})", f"replace({a}, {b}, 'x')",
                            f"{a} LIKE {n.one(['%a%'.join(chr(39) * 2), chr(39) + '_' + chr(39), chr(39) + 'a_' + chr(39), chr(39) + '%' + chr(39)])}", f"{a} ILIKE 'A%'", f"{a} SIMILAR TO '[a-z]+'", f"lpad({a}, 4, 'é')", f"rpad({a}, 3, '*')", f"repeat({a}, {n.below(3)})", f"concat({a}, {b}, NULL)",
                            f"concat_ws('-', {a}, NULL, {b})", f"split_part({a}, 'a', {n.one(['1', '2', '-1'])})", f"string_split({a}, {n.one([chr(39) + 'a' + chr(39), chr(39) * 2])})", f"regexp_replace({a}, '[aä]', '<\\0>', 'g')", f"regexp_extract({a}, '([a-z])', 1)", f"regexp_matches({a}, '^a')",
                            f"trim({a})", f"ltrim({a}, 'a')", f"initcap({a})" if False else f"ascii({a})", f"chr(97 + abs(k)::INTEGER)", f"unicode({a})", f"md5({a})", f"translate({a}, 'ab', 'xy')", f"starts_with({a}, {b})", f"contains({a}, {b})", f"({a})[1:2]", f"({a})[-1]", f"levenshtein(upper('x'), upper('y'))", f"{a} < {b}",
                            f"hex({a})", f"strlen({a})", f"bit_length({a})", f"format('{{}}-{{}}', {a}, {b})", f"printf('%s|%5d', {a}, k)", f"string_split_regex({a}, '[ab]')", f"array_to_string(string_split({a}, 'b'), '+')", f"nullif({a}, {b})", f"list_sort([{a}, {b}])", f"min({a}) OVER ()", f"{a} BETWEEN 'a' AND 'b'"])
        return f"SELECT id, {expression} FROM u"

    def limits(self):
        n = self.n
        table, alias = self.table()
        scope = [(table, alias)]
        order = n.one([f"{alias}.k {n.one(['ASC', 'DESC'])} NULLS {n.one(['FIRST', 'LAST'])}, {alias}.id", f"{alias}.g DESC NULLS LAST, {alias}.id", f"{self.number(scope, 1)} NULLS FIRST, {alias}.id"])
        limit = n.one([f"LIMIT {n.below(5)}", f"LIMIT {n.below(5)} OFFSET {n.below(4)}", f"OFFSET {n.below(4)}", "LIMIT 40%", f"LIMIT (SELECT max(k) FROM v WHERE k >= 0)"])
        query = f"SELECT {alias}.id, {alias}.k FROM {table} {alias}{self.where(scope)} ORDER BY {order} {limit}"
        if n.chance(25):
            key = n.one(["k", "g"])
            return f"SELECT count(*), count({key}) FROM (SELECT {alias}.{key} FROM {table} {alias} ORDER BY {alias}.{key} NULLS LAST FETCH FIRST 2 ROWS WITH TIES) q" if False else query
        return n.one([query, f"SELECT count(*), sum(id) FROM ({query}) q", f"SELECT a.id FROM ({query}) a JOIN ({query}) b ON a.id = b.id", f"SELECT id FROM ({query}) q WHERE k > 0"])

    def recursion(self):
        n = self.n
        union = n.one(["UNION ALL", "UNION"])
        return n.one([lambda: f"WITH RECURSIVE r(x, y) AS (SELECT 1, 'a' {union} SELECT x + 1, y || 'b' FROM r WHERE x < {2 + n.below(5)}) SELECT * FROM r",
                      lambda: f"WITH RECURSIVE r(id, k, step) AS (SELECT id, k, 0 FROM e WHERE id {n.one(['= 1', '< 4', '> 2'])} {union} SELECT v.id, v.k, r.step + 1 FROM v JOIN r ON v.id = r.k WHERE r.step < 4) SELECT {n.one(['*', 'step, count(*)', 'max(step), count(DISTINCT id)'])} FROM r{''}",
                      lambda: f"WITH RECURSIVE r AS (SELECT id, k FROM v WHERE k IS NOT NULL UNION SELECT r.id, v.k FROM r JOIN v ON v.id = r.k) SELECT id, count(*), max(k) FROM r GROUP BY id",
                      lambda: f"WITH RECURSIVE r(a, b) AS (SELECT 0::BIGINT, 1::BIGINT UNION ALL SELECT b, a + b FROM r WHERE b < {10 + n.below(200)}) SELECT sum(a), max(b), list(a ORDER BY a) FROM r",
                      lambda: f"WITH RECURSIVE r(x) AS (SELECT DISTINCT k FROM e WHERE k > 0 UNION ALL SELECT x - 1 FROM r WHERE x > 0) SELECT x, count(*) FROM r GROUP BY x HAVING count(*) > 1",
                      lambda: f"WITH RECURSIVE r(path, last) AS (SELECT [id], k FROM v UNION ALL SELECT list_append(path, v.id), v.k FROM r JOIN v ON v.id = last WHERE len(path) < 4 AND NOT list_contains(path, v.id)) SELECT path FROM r"])().replace("step, count(*) FROM r", "step, count(*) FROM r GROUP BY step")

    def named_queries(self):
        n = self.n
        first, second = Forms(self.n), Forms(self.n)
        first.aliases, second.aliases = 100, 200
        a = first.table()
        query = f"SELECT {a[1]}.id AS id, {a[1]}.k AS k, {first.number([a], 1)} AS n, {a[1]}.g AS g FROM {a[0]} {a[1]}{first.where([a])}"
        use = n.one(["SELECT x.id, y.id FROM q x JOIN q y ON x.k = y.n", "SELECT k, count(*), sum(n) FROM q GROUP BY k", "SELECT id FROM q WHERE n > (SELECT avg(n) FROM q)", "SELECT id FROM q EXCEPT SELECT id FROM q WHERE n > 1",
                     "SELECT id, n, rank() OVER (PARTITION BY k ORDER BY n NULLS FIRST) FROM q", "SELECT (SELECT count(*) FROM q x WHERE x.k = q.k), id FROM q", "SELECT q.id, v.id FROM q LEFT JOIN v ON q.n = v.n AND v.k > 0", "SELECT * FROM q WHERE EXISTS (SELECT 1 FROM q p WHERE p.id > q.id AND p.k = q.k)",
                     "SELECT DISTINCT k, g FROM q WHERE (k, g) IN (SELECT k, g FROM v)", "SELECT p.k, (SELECT max(q.n) FROM q WHERE q.k = p.k AND q.id <> p.id) FROM q p", "FROM q SELECT count(*) FILTER (n > 0), count(DISTINCT k)"])
        return f"WITH q AS {n.one(['', 'MATERIALIZED ', 'NOT MATERIALIZED '])}({query}) {use}"

    def change(self):
        """A statement that changes `changed_rows`, a copy of `v`. Of the rows that another table brings at most one is of a row."""
        n = self.n
        own = [("v", "changed_rows")]
        once = f"(SELECT k, max(id) AS id, max(n) AS n, min(m) AS m, min(g) AS g FROM v GROUP BY k) s"
        both = [*own, ("v", "s")]
        sets = lambda scope: ", ".join(n.one([[f"n = {self.number(scope, 1)}"], [f"g = {self.text(scope)}", f"n = {self.number(scope, 1)}"], [f"k = {self.number(scope, 1)}"],  # noqa: E731
                                              ["n = changed_rows.m", "m = changed_rows.n"], [f"m = CASE WHEN {self.condition(scope, 1)} THEN changed_rows.n ELSE changed_rows.k END"]]))
        form = n.below(9)
        if form == 0:
            return f"DELETE FROM changed_rows WHERE {self.condition(own, 2)}"
        if form == 1:
            return f"DELETE FROM changed_rows WHERE {self.predicate(own, 1)}"
        if form == 2:
            table, alias = self.table()
            return f"DELETE FROM changed_rows USING {table} {alias} WHERE {alias}.k = changed_rows.k AND {self.condition([*own, (table, alias)], 1)}"
        if form == 3:
            return f"UPDATE changed_rows SET {sets(own)}{n.one(['', f' WHERE {self.condition(own, 2)}', f' WHERE {self.predicate(own, 0)}'])}"
        if form == 4:
            return f"UPDATE changed_rows SET {sets(both)} FROM {once} WHERE changed_rows.k = s.k AND {self.condition(both, 1)}"
        if form == 5:
            return f"UPDATE changed_rows SET n = {self.subquery(own, 0)}{self.where(own)}"
        if form == 6:
            table, alias = self.table()
            return f"INSERT INTO changed_rows {n.one(['', 'BY NAME '])}SELECT {alias}.id AS id, {alias}.k AS k, {alias}.g AS g, {self.number([(table, alias)], 1)} AS n, NULL AS m FROM {table} {alias}{self.where([(table, alias)])}"
        clauses = []
        if n.chance(60):
            clauses.append(f"WHEN MATCHED AND {self.condition(both, 1)} THEN {n.one(['DELETE', f'UPDATE SET {sets(both)}', 'DO NOTHING'])}")
        if n.chance(60):
            clauses.append(f"WHEN MATCHED THEN {n.one(['DELETE', f'UPDATE SET {sets(both)}', f'UPDATE SET {sets(both)}'])}")
        if n.chance(60):
            clauses.append(f"WHEN NOT MATCHED{n.one(['', ' BY TARGET'])}{n.one(['', f' AND s.n > {n.one(WHOLE)}'])} THEN INSERT {n.one(['(id, k, n) VALUES (s.id, s.k, s.n)', '(k, g) VALUES (s.k, upper(s.g))', 'BY NAME'])}")
        if n.chance(40):
            clauses.append(f"WHEN NOT MATCHED BY SOURCE{n.one(['', f' AND {self.condition(own, 1)}'])} THEN {n.one(['DELETE', f'UPDATE SET {sets(own)}'])}")
        return f"MERGE INTO changed_rows USING {once} ON changed_rows.{n.one(['k', 'k', 'n', 'id'])} = s.k {' '.join(clauses or ['WHEN MATCHED THEN DELETE'])}"

    def star_forms(self):
        n = self.n
        return n.one([lambda: "SELECT * EXCLUDE (l, s, b) FROM e", lambda: "SELECT * EXCLUDE (l, s) REPLACE (k + 1 AS k) FROM e", lambda: "SELECT COLUMNS('^[kn]$') + 1 FROM e", lambda: "SELECT max(COLUMNS('^(k|n|d)$')) FROM e",
                      lambda: "SELECT k, g, count(*) FROM v GROUP BY ALL", lambda: "SELECT g, k + 1 AS q, sum(n) FROM v GROUP BY ALL ORDER BY ALL NULLS LAST", lambda: "SELECT u.* EXCLUDE (ts), v.n FROM u JOIN v USING (k)", lambda: f"SELECT k AS q, q + 1 AS r FROM v WHERE q > {n.one(WHOLE)}",
                      lambda: "SELECT k % 2 AS parity, count(*) AS c FROM v GROUP BY parity HAVING c > 1", lambda: "SELECT * FROM u NATURAL JOIN (SELECT k, m FROM v)", lambda: "SELECT * FROM (SELECT k, g FROM u) NATURAL FULL JOIN (SELECT k, n FROM v)",
                      lambda: "SELECT * FROM (SELECT k, g FROM u) NATURAL LEFT JOIN (SELECT k, g, n FROM v)", lambda: "SELECT v.*, u.w FROM v FULL JOIN u ON u.k = v.k AND u.g = v.g", lambda: "FROM v SELECT id, n WHERE k > 0", lambda: "SELECT sum(n), count(*) FROM (FROM v WHERE n > 0 UNION ALL FROM v)",
                      lambda: "SELECT a.k, b.k FROM v a POSITIONAL JOIN v b" if False else "SELECT id, n FROM v WHERE (k, n) > (1, 2)", lambda: "SELECT (k, g) AS p, count(*) FROM v GROUP BY p", lambda: "VALUES (1, 'a'), (2, NULL), (NULL, 'c')", lambda: "SELECT * FROM (VALUES (1, 2.5), (2, NULL), (NULL, 1)) t(a, b) WHERE a >= 1 OR b = 1",
                      lambda: "SELECT id, ROW(k, n) = ROW(1, 2), ROW(k, n) IN (ROW(1, 2), ROW(2, 3)) FROM v", lambda: "SELECT count(*), count(k), count(DISTINCT k), count(DISTINCT (k, g)) FROM v", lambda: "SELECT * FROM v WHERE COLUMNS('^[knm]$') > 0", lambda: "SELECT id FROM v WHERE (SELECT count(*) FROM u) > k",
                      lambda: "SELECT id, k IN (1, 2, NULL), k NOT IN (1, 2), NOT (k = 1), k = 1 OR NULL, k = 1 AND NULL FROM v", lambda: "SELECT generate_series, id FROM v, generate_series(1, v.k)", lambda: "SELECT id, unnest(range(k)) FROM v", lambda: "SELECT id, u FROM v, unnest([k, n]) t(u)"])()
