// Names of types as SQL has them; the catalog's routes name those of Arrow.

const NAMES: Record<string, string> = {
  Null: "NULL", Boolean: "BOOLEAN", Utf8: "VARCHAR", LargeUtf8: "VARCHAR", Utf8View: "VARCHAR",
  Int8: "TINYINT", Int16: "SMALLINT", Int32: "INTEGER", Int64: "BIGINT",
  UInt8: "UTINYINT", UInt16: "USMALLINT", UInt32: "UINTEGER", UInt64: "UBIGINT",
  Float16: "FLOAT", Float32: "FLOAT", Float64: "DOUBLE", Date32: "DATE", Date64: "DATE",
  Binary: "BLOB", LargeBinary: "BLOB", BinaryView: "BLOB",
};

const TIMESTAMPS: Record<string, string> = { s: "TIMESTAMP_S", ms: "TIMESTAMP_MS", ns: "TIMESTAMP_NS" };

/** Returns the name of an Arrow type in SQL; one that has none of its own here stays what it is. */
export function sqlTypeName(arrow: string): string {
  const known = NAMES[arrow];
  if (known !== undefined) return known;
  const [, name = "", inside = ""] = /^(\w+)\((.*)\)$/.exec(arrow) ?? [];
  if (name === "List" || name === "LargeList") return `${sqlTypeName(inside.replace(/^(non-null|nullable) /, ""))}[]`;
  if (name === "Timestamp") return inside.includes(",") ? "TIMESTAMP WITH TIME ZONE" : TIMESTAMPS[inside] ?? "TIMESTAMP";
  if (/^Decimal\d+$/.test(name)) return `DECIMAL(${inside.replace(/\s/g, "")})`;
  if (/^Time\d+$/.test(name)) return "TIME";
  if (name === "Interval" || name === "Duration") return "INTERVAL";
  return arrow;
}
