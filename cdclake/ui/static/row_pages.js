// Pages about single rows: the quarantine, and the story of one key.

import { ask } from "/api.js";
import { bytes, el, mark, number, plain, seconds, table, when } from "/dom.js";

const NOT_ASKED = "Of a deployment only the lake is asked, not its source and its Kafka.";

export async function quarantinePage(lake, name) {
  const heading = el("h1", {}, name ? `Quarantine of ${name}` : "Quarantine");
  const counts = table("Events in quarantine by table", [
    ["table", (row) => row.table],
    ["events", (row) => number(row.quarantined), true],
    ["withheld by a rule", (row) => number(row.withheld), true],
  ], lake.tables.filter((row) => row.quarantined && (!name || row.table === name)));
  const { events } = await ask("quarantine", name ? [["table", name]] : []);
  return [heading, counts, table(`The newest ${events.length} events`, [
    ["table", (event) => event.table],
    ["key", (event) => plain(event.key)],
    ["at", (event) => when(event.at)],
    ["place", recordPlace],
    ["bytes", (event) => bytes(event.bytes), true],
    ["reason", (event) => event.reasons.map(reason)],
    ["repair", (event) => event.withheld ? "none: a rule withholds it" : plain(event.remedy)],
  ], events)];
}

// A redrive quarantines a line of an object, which is in no partition.
function recordPlace(record) {
  return record.partition === null ? `line ${record.offset} of ${record.topic}`
    : `${record.topic}, partition ${record.partition}, offset ${record.offset}`;
}

function reason(each) {
  const column = each.column ? `${each.column}: ` : "";
  const value = each.value === null ? "" : ` (value ${each.value})`;
  return el("div", {}, `${column}${each.reason}${value}`);
}

// The form of a key; a page for a key has the address that the form leads to.
export async function keyPage(lake, name, key) {
  const heading = el("h1", {}, "The story of one key");
  const about = lake.target === "aws" ? [el("p", { class: "quiet" }, NOT_ASKED)] : [];
  const shown = [heading, ...about, form(lake, name, key)];
  if (!name || key.length === 0) return shown;
  return [...shown, ...story(await ask("trace",
    [["table", name], ...key.map((value) => ["key", value])]))];
}

function form(lake, name, key) {
  const choices = lake.tables.map((row) =>
    el("option", { value: row.table, selected: row.table === name }, row.table));
  const made = el("form", {},
    el("label", {}, "table", el("select", { name: "table", "data-focus": "table" }, choices)),
    el("label", {}, "key, one line per key column",
      el("textarea", { name: "key", rows: 2, "data-focus": "key", required: true },
        key.join("\n"))),
    el("button", { "data-focus": "ask" }, "Show"));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    const given = new FormData(made);
    const words = given.get("key").replaceAll("\r", "").replace(/\n$/, "").split("\n");
    location.hash = `#/${["key", given.get("table"), ...words].map(encodeURIComponent).join("/")}`;
  });
  return made;
}

function story(report) {
  return [
    el("h2", {}, `${report.table} ${report.key.join(" ")}: ${report.situation}`),
    el("ul", {}, report.findings.map((found) =>
      el("li", {}, found.text, found.remedy ? ` Remedy: ${found.remedy}` : ""))),
    el("ol", { class: "story" }, report.events.map((event, index) =>
      eventItem(event, report.hops.filter((hop) => hop.event === index)))),
    table("What each reader answers now", [
      ["reader", ([name]) => name],
      ["answer", ([name, answer]) => name === "source" ? ofSource(answer) : ofLake(answer)],
    ], Object.entries(report.readers)),
  ];
}

function ofSource(answer) {
  if (answer.has_row === null) return "does not answer";
  return answer.has_row ? "has the row" : "has no such row";
}

function ofLake(answer) {
  return answer === null ? "no row" : plain(answer);
}

function eventItem(event, hops) {
  const heading = [event.operation, event.tx_id === null ? "" : `, transaction ${event.tx_id}`];
  return el("li", {}, heading.join(""), event.reason ? [" ", mark(event.reason, "warn")] : [],
    table("Hops", [
      ["hop", (hop) => hop.hop],
      ["at", (hop) => hop.at],
      ["after", (hop) => hop.seconds === null ? "" : seconds(hop.seconds), true],
      ["place", place],
    ], hops.some((hop) => hop.hop === "kafka") ? hops : [...hops, ...unknownHop(event)]),
    values(event.before ?? {}, event.after ?? {}));
}

// The place of an event whose time in Kafka, or in Firehose, is unknown.
function unknownHop(event) {
  const hop = event.partition === null ? "firehose" : "kafka";
  return event.offset === null ? [] : [{ ...event, hop, at: "unknown", seconds: null }];
}

function values(before, after) {
  const columns = Object.keys({ ...before, ...after });
  return columns.length === 0 ? [] : table("Values", [
    ["column", (column) => column],
    ["before", (column) => plain(before[column])],
    ["after", (column) => plain(after[column])],
  ], columns);
}

function place(hop) {
  if (hop.hop === "source") return hop.lsn ? `LSN ${hop.lsn}` : "";
  if (hop.hop === "kafka" || hop.hop === "firehose") return recordPlace(hop);
  return hop.reason ?? "";
}
