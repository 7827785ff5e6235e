// One mechanism for all that is live: the stream says what changed, the page is read again, and the
// difference is morphed in.
import { Idiomorph } from "/studio/static/idiomorph.js";
const policy = window.trustedTypes?.createPolicy("holdfast", { createHTML: (text) => text });
const csrf = () => document.querySelector("meta[name=csrf]").content;
const one = (selector) => document.querySelector(selector);
const all = (selector) => [...document.querySelectorAll(selector)];

if (one("hf-timeline")) import("/studio/static/timeline.js");
if (one("hf-chart")) import("/studio/static/charts.js");
if (one("hf-graph")) import("/studio/static/graph.js");

let quiet;
function say(text) {
  one("#say").textContent = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => (one("#say").textContent = ""), Math.max(4000, text.length * 90));
}

const begun = (form) => [...form.elements].some((each) => each.value !== (each.options ? ([...each.options].find((option) => option.defaultSelected)?.value ?? each.options[0]?.value) : each.defaultValue ?? each.value));
let reading;
async function renew() {
  reading?.abort();
  const own = (reading = new AbortController());
  let text;
  try {
    const answer = await fetch(location.href, { signal: own.signal });
    if (answer.status === 401) return location.reload();
    if (!answer.ok) return say("The server could not answer.");
    text = await answer.text();
  } catch (error) {
    if (error.name !== "AbortError") say("The server does not answer.");
    return;
  }
  const page = new DOMParser().parseFromString(policy ? policy.createHTML(text) : text, "text/html");
  const pointed = document.activeElement?.matches("[data-row]");
  const typing = document.activeElement?.matches("input,textarea,select");
  Idiomorph.morph(one("#main"), page.getElementById("main"), {
    ignoreActiveValue: typing,
    callbacks: {
      // Why an action was refused is on this page only, not on the one that is read.
      beforeNodeRemoved: (old) => !("stays" in (old.dataset ?? {})),
      // What a reader opened, chose or typed stays.
      beforeNodeMorphed(old, fresh) {
        if (old.nodeName === "DETAILS" && fresh.setAttribute) fresh.toggleAttribute("open", old.open);
        if (old.nodeName === "DIALOG" && old.open) return false;
        // An element that draws itself takes the new figures, and keeps its drawing until it has drawn them.
        if (old.nodeName.startsWith("HF-")) {
          for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
          return false;
        }
        if (old.matches?.("form") && old.contains(document.activeElement) && typing) return false;
        // An answer that was refused or is half written stays until its question is another.
        if (old.dataset?.question && old.dataset.question === fresh.dataset?.question && ("refused" in old.dataset || begun(old))) return false;
        if (old.matches?.("[data-one]")) fresh.checked = old.checked;
        if (old.matches?.("[data-row].cur")) { fresh.classList.add("cur"); fresh.setAttribute("tabindex", -1); }
      },
    },
  });
  // A row that the morph has moved lost the focus.
  if (pointed) one(".cur")?.focus({ preventScroll: true });
  document.title = page.title;
  chosen();
}

// HTTP/1.1 gives a browser six connections to one server: with a stream per tab the seventh tab
// would hang. So one tab holds the stream and notifies the others; when it closes, the next takes over.
const bus = new BroadcastChannel("holdfast-studio");
let waiting;
function hear(news) {
  badge(news.waiting);
  const wanted = one("[data-live]")?.dataset.live;
  if (!wanted || !(news.ready || (news.tasks && (wanted === "*" || news.tasks.includes(wanted))))) return;
  clearTimeout(waiting);
  waiting = setTimeout(() => renew(), 60);
}
// How many tasks wait for a person; kept, so that the next page shows it at once.
const kept = `holdfast-waiting-${csrf().slice(0, 9)}`;
function badge(count) {
  if (count === undefined) return;
  try { localStorage.setItem(kept, count); } catch { /* the number shows with the next change */ }
  for (const each of all("[data-waiting],[data-waits]")) { each.textContent = count > 99 ? "99+" : count; each.hidden = !count; }
}
badge(Number(localStorage.getItem(kept) ?? 0));
const me = Math.random();
bus.onmessage = ({ data }) => (data.hello ? answer?.(data.hello) : (data.only ?? me) === me && hear(data));
// What changed after a page was made and before it heard of changes is on no stream: a page is read again when
// its stream begins. The tab that has the stream tells a new tab that it has begun.
let answer;
function lead() {
  const source = new EventSource("/studio/live");
  answer = (only) => source.readyState === EventSource.OPEN && bus.postMessage({ ready: true, only });
  const pass = (news) => { bus.postMessage(news); hear(news); };
  source.addEventListener("ready", (event) => pass({ ...JSON.parse(event.data), ready: true }));
  source.addEventListener("changed", (event) => pass(JSON.parse(event.data)));
  source.onerror = () => one(".live")?.classList.add("off");
  source.onopen = () => one(".live")?.classList.remove("off");
  return source;
}
bus.postMessage({ hello: me });
if (navigator.locks) {
  navigator.locks.request("holdfast-studio", () => {
    lead();
    return new Promise(() => {});
  });
} else {
  // Without locks every tab has a stream while it is looked at.
  let source = lead();
  document.addEventListener("visibilitychange", () => {
    source.close();
    if (!document.hidden) source = lead();
  });
}
// What has no feed of changes is read again while it is looked at.
setInterval(() => {
  if (!document.hidden && one("[data-live]")?.dataset.live === "~") renew();
}, 2000);

// Durations of what goes on, and times that are told as "ago", tick by the server's clock. A page that the browser
// kept has an old one, so that of this machine counts there.
const kind = performance.getEntriesByType("navigation")[0]?.type, server = Date.parse(one("meta[name=now]")?.content);
const ahead = kind === "back_forward" || !server ? 0 : server - Date.now();
const span = (s) => (s < 60 ? `${Math.floor(s)} s` : s < 3600 ? `${Math.floor(s / 60)} m ${Math.floor(s % 60)} s` : s < 86400 ? `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} m` : `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`);
const past = (when) => (Date.now() + ahead - Date.parse(when)) / 1000;
const ago = (s) => (Math.abs(s) < 1 ? "just now" : s < 0 ? `in ${span(-s)}` : `${span(s)} ago`);
setInterval(() => {
  if (document.hidden) return;
  for (const each of all("[data-since]")) each.textContent = span(Math.max(0, past(each.dataset.since)));
  for (const each of all("time[data-ago]")) each.textContent = ago(past(each.dateTime));
}, 1000);

// ---- time travel ---------------------------------------------------------------------------
let asked;
function travel(seq) {
  const range = one("[data-scrub]");
  if (!range) return;
  range.value = Math.min(Math.max(seq, 1), Number(range.max));
  const picture = one("hf-timeline");
  if (picture) picture.dataset.at = range.value;
  const url = new URL(location);
  if (range.value === range.max) url.searchParams.delete("at");
  else url.searchParams.set("at", range.value);
  // A page that is on its way is of another moment, and whatever is read later is of this one.
  reading?.abort();
  clearTimeout(asked);
  asked = setTimeout(() => { history.replaceState(null, "", url); renew(); }, 60);
}
addEventListener("hf-travel", (event) => travel(event.detail));
addEventListener("input", (event) => {
  if (event.target.matches("[data-scrub]")) travel(Number(event.target.value));
  if (event.target.matches("#palette input")) find(event.target.value);
});

// ---- selection of many ---------------------------------------------------------------------
function chosen() {
  const form = one("[data-many]");
  if (!form) return;
  const ids = all("[data-one]:checked").map((box) => box.value);
  form.hidden = !ids.length;
  form.closest(".bar").classList.toggle("choosing", !form.hidden);
  form.elements.tasks.value = ids.join(",");
  form.querySelector("[data-count]").textContent = `${ids.length} chosen`;
}
addEventListener("change", (event) => {
  if (event.target.matches("[data-submit]")) event.target.form.requestSubmit();
  if (event.target.matches("[data-all]")) all("[data-one]").forEach((box) => (box.checked = event.target.checked));
  if (event.target.matches("[data-all],[data-one]")) chosen();
});

// Rows may be chosen before this script runs: by a quick hand, or by the browser on the way back.
chosen();

// ---- clicks and forms ----------------------------------------------------------------------
addEventListener("click", (event) => {
  // A click on an event, beside what can be clicked in it, goes to that event.
  const to = event.target.closest(".ev")?.querySelector("a.no");
  if (to && !event.target.closest("a,button,input,form,details,pre") && getSelection().isCollapsed) return travel(Number(new URL(to.href).searchParams.get("at")));
  const found = event.target.closest("[data-step],[data-copy],[data-open],[data-close],[data-theme-toggle],tr[data-href]");
  if (!found) return;
  const data = found.dataset;
  if (data.step) travel(Number(one("[data-scrub]").value) + Number(data.step));
  else if (data.copy) navigator.clipboard?.writeText(data.copy).then(() => say("Copied."), () => say("The browser refused to copy."));
  else if (data.open === "palette") palette();
  else if (data.open) document.getElementById(data.open).showModal();
  else if ("close" in data) found.closest("dialog").close();
  else if ("themeToggle" in data) {
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light";
    const chosen = (root.dataset.theme || system) === "dark" ? "light" : "dark";
    root.dataset.theme = chosen;
    // The scheme of the system is not kept: the next page follows the system again.
    document.cookie = `theme=${chosen};path=/studio;max-age=${chosen === system ? 0 : 31536000};samesite=strict`;
  } else if (data.href && !event.target.closest("a,input,button,summary,form")) location.href = data.href;
});
addEventListener("submit", (event) => {
  const done = event.target.dataset?.done, text = event.submitter?.dataset.confirm ?? event.target.dataset?.confirm;
  const count = all("[data-one]:checked").length;
  if (text && !confirm(text.replace("{n}", `${count} ${event.target.dataset.many || "task"}${count === 1 ? "" : "s"}`))) event.preventDefault();
  else if (done) sessionStorage.setItem("done", done);
});
// What was done is said on the page that follows, unless it shows an error.
const done = sessionStorage.getItem("done");
sessionStorage.removeItem("done");
if (done && !one("[role=alert]")) say(done);
// The result of an action is said once: a page that is read again, or kept as a bookmark, has it not.
const here = new URL(location);
if (here.searchParams.has("did")) { here.searchParams.delete("did"); here.searchParams.delete("pick"); history.replaceState(null, "", here); const note = one("[data-note]"); if (note) { say(note.textContent); note.remove(); } }

// ---- boards ----------------------------------------------------------------------------------
async function move(card, to) {
  const board = card.closest("[data-board]"), id = card.dataset.card;
  const body = new URLSearchParams({ csrf: csrf(), do: "move", board: board.dataset.board, card: id, to, version: card.dataset.version });
  const answer = await fetch(board.dataset.url, { method: "POST", headers: { "X-Part": "move" }, body });
  if (!answer.ok) say(await answer.text());
  await renew();
  document.getElementById(`c-${id}`)?.focus();
}
let held;
const columnOf = (event) => held && event.target.closest?.("[data-to]");
addEventListener("dragstart", (event) => { held = event.target.closest?.("[data-card]"); held?.classList.add("drag"); });
addEventListener("dragend", () => { held?.classList.remove("drag"); held = null; all(".over").forEach((column) => column.classList.remove("over")); });
addEventListener("dragover", (event) => {
  const column = columnOf(event);
  if (column && column.closest("[data-board]") === held.closest("[data-board]")) { event.preventDefault(); column.classList.add("over"); }
});
addEventListener("dragleave", (event) => event.target.classList?.remove("over"));
addEventListener("drop", (event) => { const column = columnOf(event); if (column) { event.preventDefault(); move(held, column.dataset.to); } });

// ---- palette -----------------------------------------------------------------------------------
// Pages and commands are known here; agents, sessions and tasks are asked for.
const COMMANDS = [
  ["Failed tasks", "/studio/tasks?state=failed"],
  ["Running tasks", "/studio/tasks?state=working"],
  ["Switch between light and dark", () => one("[data-theme-toggle]").click()],
  ["Keys of the keyboard", () => one("#help").showModal()],
];
const make = (name, text, kind = "") => { const made = document.createElement(name); made.textContent = text; made.className = kind; return made; };
function option(kind, text, to, note = "") {
  const li = document.createElement("li"), a = make("a", text);
  a.href = typeof to === "string" ? to : "#";
  if (typeof to !== "string") a.onclick = (event) => { event.preventDefault(); one("#palette").close(); to(); };
  a.append(make("small", note ? `${kind}, ${note}` : kind));
  li.append(a);
  return li;
}
function palette() {
  if (!one("#palette").open) one("#palette").showModal();
  find(one("#palette input").value);
}
let asking, current = "";
function find(text) {
  const words = text.trim().toLowerCase(), has = (name) => name.toLowerCase().includes(words);
  current = words;
  const pages = all(".nav").map((link) => [link.firstChild.nextSibling?.textContent || link.textContent, link.href]);
  const buttons = all("main [data-open],main .acts .btn:not([data-open])").map((button) => [button.textContent.trim(), () => button.click()]);
  const found = [
    ...pages.filter(([name]) => has(name)).map(([name, href]) => option("Page", name, href)),
    ...[...buttons, ...COMMANDS].filter(([name]) => words && has(name)).map(([name, to]) => option("Command", name, to)),
  ];
  show(found);
  clearTimeout(asking);
  if (words.length > 1) asking = setTimeout(async () => {
    const answer = await fetch(`/studio/palette?q=${encodeURIComponent(words)}`).catch(() => null);
    if (!answer?.ok || words !== current) return;
    show([...found, ...(await answer.json()).map((row) => option(row.kind, row.text, row.href, row.note))]);
  }, 120);
}
function show(rows) {
  one("[data-found]").replaceChildren(...rows);
  rows[0]?.firstChild.classList.add("cur");
}
one("#palette form")?.addEventListener("submit", (event) => {
  event.preventDefault();
  const text = event.target.elements.q.value.trim(), first = one("[data-found] .cur");
  if (/^[0-9a-f-]{36}$/.test(text)) location.href = `/studio/tasks/${text}`;
  else if (first) first.click();
  else if (text) location.href = `/studio/search?q=${encodeURIComponent(text)}`;
});
one("#palette")?.addEventListener("keydown", (event) => {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  event.preventDefault();
  const links = all("[data-found] a"), at = links.findIndex((link) => link.classList.contains("cur"));
  const next = links[Math.min(Math.max(at + (event.key === "ArrowDown" ? 1 : -1), 0), links.length - 1)];
  links[at]?.classList.remove("cur");
  next?.classList.add("cur");
  next?.scrollIntoView({ block: "nearest" });
});

// ---- keys ----------------------------------------------------------------------------------------
let going = 0;
function rows(key) {
  const found = all("[data-row]");
  if (!found.length) return false;
  let at = found.findIndex((row) => row.classList.contains("cur"));
  if (key === "Enter") { const to = found[at]?.dataset.href || found[at]?.dataset.row; if (to) location.href = to; return Boolean(to); }
  if (key === "x") { const box = found[at]?.querySelector("[data-one]"); if (box) { box.checked = !box.checked; chosen(); } return true; }
  found[at]?.classList.remove("cur");
  at = Math.min(Math.max(at + (key === "j" ? 1 : -1), 0), found.length - 1);
  found[at].classList.add("cur");
  found[at].tabIndex = -1;
  found[at].focus({ preventScroll: true });
  found[at].scrollIntoView({ block: "nearest" });
  return true;
}
addEventListener("keydown", (event) => {
  if ((event.metaKey || event.ctrlKey) && event.key === "k") { event.preventDefault(); palette(); return; }
  if (event.target.matches("input:not([data-scrub]):not([type=checkbox]),select,textarea") || event.metaKey || event.ctrlKey || event.altKey || one("dialog[open]")) return;
  const key = event.key, card = event.target.closest("[data-card]"), range = one("[data-scrub]");
  if (Date.now() - going < 1500 && /^[a-z]$/.test(key)) { going = 0; const link = one(`[data-go="${key}"]`); if (link) location.href = link.href; return; }
  if (card && event.target === card && (key === "ArrowRight" || key === "ArrowLeft")) {
    const columns = [...card.closest("[data-board]").querySelectorAll("[data-to]")];
    const to = columns[columns.indexOf(card.closest("[data-to]")) + (key === "ArrowRight" ? 1 : -1)];
    if (to && card.draggable) { event.preventDefault(); move(card, to.dataset.to); }
  } else if (range && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key)) {
    event.preventDefault();
    travel({ ArrowLeft: Number(range.value) - 1, ArrowRight: Number(range.value) + 1, Home: 1, End: Number(range.max) }[key]);
  } else if (["j", "k", "x", "Enter"].includes(key)) { if (!event.target.closest("a,button,summary") || key !== "Enter") rows(key); }
  else if (key === "g") going = Date.now();
  else if (key === "?") one("#help").showModal();
  else if (key === "f" && one("[data-fork]")) { event.preventDefault(); const fork = one("[data-fork]"); fork.open = true; fork.querySelector("textarea,input:not([type=hidden])").focus(); }
  else if (key === "r" || key === "c") {
    const box = one(".cur [data-one]"), button = one(`main [data-key="${key}"]`);
    if (button && box && !all("[data-one]:checked").length) { box.checked = true; chosen(); }
    if (button && !button.closest("[hidden]")) button.click();
  }
  else if (key === "/") { event.preventDefault(); const field = one("main input[type=search]"); if (field) field.focus(); else palette(); }
  else if (key === "a") { const fields = "input:not([type=hidden]),select,textarea,.options button", field = one(".ask.cur")?.querySelector(fields) ?? one(".ask")?.querySelector(fields); if (field) { event.preventDefault(); field.focus(); } }
  else if (key === "e") {
    const at = (row) => Number(new URL(row.querySelector(".no").href).searchParams.get("at"));
    const problems = all("[data-problem]"), next = problems.find((row) => at(row) > Number(range?.value)) ?? problems[0];
    if (next) travel(at(next));
    next?.scrollIntoView({ block: "center" });
  }
});
