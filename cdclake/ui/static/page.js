// The page: reads the overview every few seconds, and shows what the address names.

import { ask, takeToken } from "/api.js";
import { draw, el, link, when } from "/dom.js";
import { costsPage, jobsPage } from "/jobs_page.js";
import { overviewPage } from "/overview.js";
import { keyPage, quarantinePage } from "/row_pages.js";
import { tablePage } from "/table_page.js";

const PAGES = [
  ["#/", "Overview"], ["#/quarantine", "Quarantine"], ["#/key", "Key"], ["#/jobs", "Jobs"],
  ["#/costs", "Costs"],
];
const RETRY_S = 2;
const LATE_S = 6;
const main = document.getElementById("content");
let lake = null;
let announced = "";
let shown = 0; // the number of the newest drawing: an older one that ends later is dropped

function address() {
  return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
}

async function content() {
  const [page, name, ...rest] = address();
  if (page === "table") return tablePage(lake, name);
  if (page === "quarantine") return quarantinePage(lake, name);
  if (page === "key") return keyPage(lake, name, rest);
  if (page === "jobs") return jobsPage(lake);
  if (page === "costs") return costsPage(lake);
  return overviewPage(lake);
}

async function show() {
  if (lake === null) return;
  const turn = ++shown;
  let nodes;
  try {
    nodes = await content();
  } catch (error) {
    nodes = [el("p", { class: "bad" }, `${error.message}. ${error.remedy ?? ""}`)];
  }
  if (turn === shown) draw(main, nodes);
}

// A screen reader reads this again whenever it changes, so the time is somewhere else.
function banner(kind, title, lines) {
  const text = JSON.stringify([kind, title, lines]);
  if (text === announced) return;
  announced = text;
  draw(document.getElementById("health"), [el("div", { class: kind },
    el("strong", {}, title), el("ul", {}, lines.map((line) => el("li", {}, line))))]);
}

function health() {
  banner(lake.health, lake.paused ? `${lake.health}, paused` : lake.health, lake.attention);
  document.getElementById("where").textContent =
    `${lake.target === "aws" ? "deployment" : "local lake"} ${lake.file ?? ""}, ${when(lake.read_at)}`;
}

function menu() {
  const [page] = address();
  draw(document.getElementById("pages"), PAGES.map(([target, title]) => {
    const made = link(target, title);
    if (target === `#/${page}`) made.setAttribute("aria-current", "page");
    return made;
  }));
}

function unread(error) {
  banner("down", "not read", [`${error.message}. ${error.remedy ?? ""}`]);
  if (lake === null) draw(main, []);
}

// Pages that cost more than a look at the overview are drawn when they are opened.
async function refresh() {
  let pause = RETRY_S;
  const late = setTimeout(() => banner("down", "no answer",
    [`The lake has not answered for ${LATE_S} seconds; the figures below are older.`]),
  LATE_S * 1000);
  try {
    lake = await ask("overview");
    pause = lake.refresh_s;
    health();
    if (address()[0] === "" || shown === 0) await show();
  } catch (error) {
    unread(error);
  } finally {
    clearTimeout(late);
  }
  setTimeout(refresh, pause * 1000);
}

addEventListener("hashchange", async () => {
  menu();
  await show();
  main.focus({ preventScroll: true });
  scrollTo(0, 0);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page
  main.focus();
});
takeToken();
menu();
refresh();
