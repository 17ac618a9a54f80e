// The columns of a table, and their profile: missing and distinct values, extremes, a histogram or the frequent values.
import { useState } from "preact/hooks";
import type { GetCatalogTablesTableProfileAnswer, QuerentError } from "querent-client";

import { asFailure, client } from "../api";
import { count } from "../format";
import { FailureBox } from "../parts";
import { sqlTypeName } from "../type-names";
import { Comment } from "./comment";
import type { TableDocument } from "./table";

type TableProfile = GetCatalogTablesTableProfileAnswer;
type ColumnProfile = TableProfile["columns"][number];

export function Columns(props: { table: TableDocument; onComment(column: string, comment: string | null): Promise<void> }) {
  const { table } = props;
  const [profile, setProfile] = useState<TableProfile | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  const [isRunning, setRunning] = useState(false);
  const read = async () => {
    setRunning(true);
    setFailure(null);
    try {
      setProfile(await client.getCatalogTablesTableProfile({ table: table.name, database: table.database }));
    } catch (error) {
      setFailure(asFailure(error));
    }
    setRunning(false);
  };
  const known = new Map(profile?.columns.map((column) => [column.name, column]));
  return (
    <section>
      <div class="row section-head">
        <button onClick={() => void read()} disabled={isRunning}>{isRunning ? "Reading the rows…" : "Profile the columns"}</button>
        <small role="status">{profile ? said(profile) : "Missing and distinct values, least and most, how values are spread."}</small>
      </div>
      {failure && <FailureBox failure={failure} />}
      <div class="table-scroll" tabIndex={0} role="group" aria-label="Columns">
        <table class="facts">
          <thead>
            <tr>
              <th scope="col">Column</th><th scope="col">Type</th>
              {profile && <><th scope="col">Missing</th><th scope="col" class="is-number">Distinct</th><th scope="col">Values</th><th scope="col">Least</th><th scope="col">Most</th><th scope="col" class="is-number">Mean</th></>}
            </tr>
          </thead>
          <tbody>
            {table.columns.map((column) => (
              <tr>
                <th scope="row">
                  {column.name}{" "}
                  <Comment of={`column ${column.name}`} text={column.comment ?? ""} onSave={(comment) => props.onComment(column.name, comment)} />
                </th>
                <td><code>{known.get(column.name)?.type ?? sqlTypeName(column.data_type)}</code>{!column.nullable && <small> not null</small>}</td>
                {profile && <Profile profile={known.get(column.name) ?? null} rows={profile.rows} name={column.name} />}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function said(profile: TableProfile): string {
  const rows = profile.is_complete ? `All ${count(profile.rows, "row")}.` : `${count(profile.rows, "row")}: the whole table took too long.`;
  return profile.left_out_columns > 0 ? `${rows} ${count(profile.left_out_columns, "column")} more are not profiled.` : rows;
}

function Profile({ profile, rows, name }: { profile: ColumnProfile | null; rows: number; name: string }) {
  if (!profile) return <td colSpan={6} class="soft">not profiled</td>;
  return (
    <>
      <td><Missing nulls={profile.nulls} rows={rows} name={name} /></td>
      <td class="is-number">{profile.distinct?.toLocaleString("en-US") ?? ""}</td>
      <td>
        {profile.histogram
          ? <Histogram buckets={profile.histogram} name={name} />
          : profile.top_values && <TopValues values={profile.top_values} rows={rows} />}
      </td>
      <td><code>{profile.min ?? ""}</code></td>
      <td><code>{profile.max ?? ""}</code></td>
      <td class="is-number">{profile.mean?.toLocaleString("en-US", { maximumSignificantDigits: 5 }) ?? ""}</td>
    </>
  );
}

function Missing({ nulls, rows, name }: { nulls: number; rows: number; name: string }) {
  const percentage = rows === 0 ? 0 : (100 * nulls) / rows;
  return (
    <span class="missing">
      <meter min={0} max={100} value={percentage} aria-label={`missing values of ${name}`} />
      {nulls === 0 ? "none" : percentage < 0.1 ? "< 0.1 %" : percentage > 99.9 && nulls < rows ? "> 99.9 %" : `${percentage.toFixed(1)} %`}
    </span>
  );
}

const WIDTH = 132;
const HEIGHT = 36;

function Histogram({ buckets, name }: { buckets: NonNullable<ColumnProfile["histogram"]>; name: string }) {
  const most = Math.max(1, ...buckets.map((bucket) => bucket.rows));
  const width = WIDTH / buckets.length;
  const highest = buckets.find((bucket) => bucket.rows === most);
  const label = `Histogram of ${name}: ${buckets.length} ranges from ${buckets[0]?.from} to ${buckets.at(-1)?.to}`
    + (highest ? `, most rows (${most}) from ${highest.from} to ${highest.to}` : "");
  return (
    <svg class="histogram" width={WIDTH} height={HEIGHT} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={label}>
      {buckets.map((bucket, at) => {
        const height = bucket.rows === 0 ? 0 : Math.max(1, (bucket.rows / most) * HEIGHT);
        return (
          <rect x={at * width} y={HEIGHT - height} width={Math.max(1, width - 1)} height={height}>
            <title>{bucket.from} – {bucket.to}: {count(bucket.rows, "row")}</title>
          </rect>
        );
      })}
    </svg>
  );
}

const FEW_VALUES = 4;

function TopValues({ values, rows }: { values: NonNullable<ColumnProfile["top_values"]>; rows: number }) {
  const [isWhole, setWhole] = useState(false);
  return (
    <ul class="top-values">
      {values.slice(0, isWhole ? values.length : FEW_VALUES).map(({ value, rows: of }) => (
        <li><code>{value === "" ? "(empty)" : value}</code> <small>{((100 * of) / Math.max(1, rows)).toFixed(1)} %</small></li>
      ))}
      {values.length > FEW_VALUES && !isWhole && <li><button class="link" onClick={() => setWhole(true)}>{values.length - FEW_VALUES} more</button></li>}
    </ul>
  );
}
