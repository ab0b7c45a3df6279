// One table: its figures, columns, schema changes and snapshots.

import { ask } from "/api.js";
import { bytes, el, link, mark, number, plain, seconds, table, when } from "/dom.js";
import { marks, verified } from "/overview.js";

export async function tablePage(lake, name) {
  const [found, listed] = await Promise.all([
    ask("table", [["table", name]]),
    ask("snapshots", [["table", name]]).catch((error) => ({ snapshots: [], error })),
  ]);
  const row = lake.tables.find((each) => each.table === found.table);
  return [
    el("h1", {}, `${found.source} → ${found.table}`),
    ...(row ? figures(row) : []),
    el("h2", {}, "Columns"), columns(found), ...excluded(found),
    el("h2", {}, "Schema changes"), ...(row ? changes(row, found.file) : []),
    ...history(listed, found),
    el("h2", {}, "Snapshots"), ...snapshots(listed),
  ];
}

function figures(row) {
  const facts = [
    ["state", [row.state, " ", ...marks(row)]],
    ["rows", `${number(row.live_rows)} live, ${number(row.state_rows)} in the state, `
      + `${number(row.changes_rows)} in the changelog, of these ${number(row.unapplied_rows)} not `
      + "applied"],
    ["lag", `${number(row.lag_events)} events`],
    ["freshness", `${seconds(row.freshness_s)} newest, ${seconds(row.freshness_p50_s)} p50, `
      + `${seconds(row.freshness_p95_s)} p95`],
    ["files", number(row.files)],
    ["quarantine", [`${number(row.quarantined)} events `,
      row.quarantined ? link(`#/quarantine/${encodeURIComponent(row.table)}`, "show them") : ""]],
    ["last verified", verified(row)],
    ...(row.last_error ? [["error", el("span", { class: "bad" }, row.last_error)]] : []),
  ];
  return [el("dl", { class: "facts" },
    facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])),
  el("p", {}, link(`#/key/${encodeURIComponent(row.table)}`, "The story of one key"))];
}

function columns(found) {
  return table("Columns from the source to the state", [
    ["column", (row) => [row.column, row.key ? [" ", mark("key", "good")] : []]],
    ["source", (row) => [row.source, ...row.earlier_names].join(", before: ")],
    ["source type", (row) => row.source_type],
    ["changelog", (row) => row.changelog_type],
    ["state", (row) => row.state_type],
    ["mask", (row) => row.mask === null ? "" : mark(row.mask, "warn")],
    ["line", (row) => row.line === null ? "" : `${found.file}:${row.line}`],
  ], found.columns);
}

function excluded(found) {
  if (found.excluded.length === 0) return [];
  return [el("p", { class: "quiet" }, `Excluded by the file: ${found.excluded.join(", ")}.`)];
}

function changes(row, file) {
  const found = [
    ...(row.relation_changes ?? []).map((each) => ({ ...each, line: null })),
    ...(row.source_changes ?? []),
  ];
  if (row.source_changes === undefined || row.source_changes === null) {
    return [el("p", { class: "quiet" }, "The source was not asked.")];
  }
  if (found.length === 0) return [el("p", { class: "quiet" }, "The source is as the file says.")];
  return [table("Differences between source and file", [
    ["place", (each) => each.line ? `${file}:${each.line}` : ""],
    ["difference", (each) => plain(each.message)],
    ["what to do", (each) => plain(each.remedy)],
  ], found)];
}

function history(listed, found) {
  const made = listed.schema_changes ?? [];
  if (made.length === 0) return [];
  const lines = new Map(found.columns.map((row) => [row.column, row.line]));
  return [table("Changes between the snapshots", [
    ["committed at", (each) => when(each.committed_at) || "no commit yet"],
    ["relation", (each) => each.relation],
    ["column", (each) => each.column],
    ["change", (each) => each.change],
    ["place", (each) => lines.get(each.column) ? `${found.file}:${lines.get(each.column)}` : ""],
  ], made)];
}

function snapshots(listed) {
  if (listed.error) return [el("p", { class: "bad" }, listed.error.message)];
  return [table(`${listed.snapshots.length} snapshots, the newest first`, [
    ["relation", (row) => row.relation],
    ["snapshot", (row) => String(row.snapshot)],
    ["committed at", (row) => when(row.committed_at)],
    ["operation", (row) => plain(row.operation)],
    ["rows", (row) => number(row.rows), true],
    ["files", (row) => number(row.files), true],
    ["size", (row) => bytes(row.bytes), true],
    ["tags", (row) => [...(row.current ? ["current"] : []), ...row.tags].join(", ")],
  ], listed.snapshots.toReversed())];
}
