// Jobs and what a month costs.

import { ask } from "/api.js";
import { el, mark, number, plain, table, when } from "/dom.js";

export async function jobsPage(lake) {
  const { jobs } = await ask("jobs");
  return [el("h1", {}, "Jobs"), jobs.length === 0
    ? el("p", { class: "quiet" }, "The pipeline file schedules no jobs.")
    : table("Jobs with their last run", [
      ["job", (job) => job.job],
      ["schedule", (job) => job.schedule ?? ""],
      ["last run", (job) => when(job.last_run) || "not run yet"],
      ["ended", (job) => when(job.ended_at)],
      ["result", result],
      ["next run", (job) => when(job.next_run)],
      ["error", (job) => job.error ?? ""],
    ], jobs)];
}

function result(job) {
  if (job.state !== undefined) {
    return mark(job.state, ["failed", "error", "timeout"].includes(job.state) ? "bad" : "good");
  }
  if (job.last_run === null) return "";
  if (job.ended_at === null) return "running";
  if (job.exit_code === null) return mark("interrupted", "warn");
  return job.exit_code === 0 ? mark("ended", "good") : mark(`ended with ${job.exit_code}`, "bad");
}

export async function costsPage(lake) {
  const heading = el("h1", {}, "Costs");
  if (lake.target !== "aws") {
    return [heading, el("p", { class: "quiet" }, "The local lake costs nothing. "
      + "`cdclake ui --target aws --file FILE` shows what a deployment costs.")];
  }
  const found = await ask("cost");
  return [heading,
    el("p", {}, `About ${number(Math.round(found.total_month_usd))} dollars a month in us-east-1, `
      + "before tax and without events: an estimate from the templates and list prices, which "
      + "no bill has confirmed. `cdclake cost` takes the volume of events."),
    table("Meters", [
      ["meter", (line) => line.meter],
      ["quantity", (line) => number(Math.round(line.quantity)), true],
      ["unit", (line) => line.unit],
      ["dollars a month", (line) => line.month_usd === null ? "unknown" : number(line.month_usd),
        true],
      ["detail", (line) => plain(line.detail)],
    ], found.meters)];
}
