// The first page: the flow from WAL to readers, and the tables.

import { bytes, el, link, mark, number, seconds, table, when } from "/dom.js";

const TITLES = {
  wal: "WAL", connector: "Connector", kafka: "Kafka", changelog: "Changelog", state: "State",
  readers: "Readers",
};
const LAGS = {
  wal: ["retained", bytes], connector: ["not confirmed", bytes], kafka: ["not read", number],
  changelog: ["not applied", number], state: ["tables behind", number],
  readers: ["incomplete", number],
};
const FINE = ["running", "scheduled", "external"];
const KINDS = {
  stopped: "bad", error: "bad", differs: "bad", unknown: "bad", quarantine: "warn", lag: "warn",
  unverified: "warn", schema: "warn",
};

export function overviewPage(lake) {
  return [
    el("h1", {}, "Flow"),
    el("ol", { class: "flow", "aria-label": "Flow" }, lake.hops.map(hop)),
    el("h2", {}, "Tables"), tables(lake), ...extras(lake),
    el("h2", {}, "Components"),
    table("Components", [
      ["component", (part) => part.name],
      ["state", (part) => mark(part.state, FINE.includes(part.state) ? "good" : "bad")],
      ["log", (part) => part.log ?? ""],
    ], lake.components),
  ];
}

function hop(each) {
  const [word, shown] = LAGS[each.hop];
  const rate = each.unit === "bytes" ? bytes(each.rate) : `${number(each.rate)} ${each.unit}`;
  const facts = [
    ["state", each.state],
    ["rate", each.rate === null ? null : `${rate}/s`],
    [word, each.lag === null ? null : shown(each.lag)],
    ["freshness", each.freshness_s === null ? null : seconds(each.freshness_s)],
  ].filter(([, value]) => value !== null);
  const fault = each.state !== null && !FINE.includes(each.state);
  return el("li", { class: fault ? "fault" : null, "data-hop": each.hop },
    el("strong", {}, TITLES[each.hop]),
    el("dl", {}, facts.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)])));
}

export function marks(row) {
  return row.marks.map((name) => mark(name, KINDS[name] ?? "warn"));
}

export function verified(row) {
  if (row.last_verified === null) return "never";
  return `${row.last_verified.equal ? "equal" : "differs"} at ${when(row.last_verified.at)}`;
}

function tables(lake) {
  const first = lake.tables.toSorted((a, b) => (b.marks.length > 0) - (a.marks.length > 0));
  return table(`${lake.tables.length} tables, those that deserve a look first`, [
    ["table", (row) => link(`#/table/${encodeURIComponent(row.table)}`, row.table)],
    ["state", (row) => [row.state, " ", ...marks(row)]],
    ["rows", (row) => number(row.live_rows ?? row.state_rows), true],
    ["lag", (row) => number(row.lag_events), true],
    ["freshness p50", (row) => seconds(row.freshness_p50_s), true],
    ["p95", (row) => seconds(row.freshness_p95_s), true],
    ["files", (row) => number(row.files), true],
    ["quarantine", (row) => row.quarantined
      ? link(`#/quarantine/${encodeURIComponent(row.table)}`, number(row.quarantined))
      : number(row.quarantined), true],
    ["last verified", verified],
  ], first);
}

function extras(lake) {
  const puts = [...(lake.puts ?? []), ...(lake.web_logs ?? [])];
  if (puts.length === 0) return [];
  return [el("h2", {}, "Put records"), table("Put records", [
    ["stream", (put) => put.puts ?? put.web_logs],
    ["rows", (put) => Object.entries(put.rows).map(([name, rows]) => `${name} ${rows}`).join(", ")],
    ["waiting", (put) => number(put.waiting), true],
    ["failed", (put) => number(put.failed), true],
    ["error", (put) => put.last_error ?? ""],
  ], puts)];
}
