// The picture of a task: a lane for each claim, steps as bars, waits hatched, a lost worker in red.
// Idle stretches are folded to a fixed width.
const NS = "http://www.w3.org/2000/svg";
const el = (name, attrs = {}, text) => { const e = document.createElementNS(NS, name); for (const k in attrs) e.setAttribute(k, attrs[k]); if (text !== undefined) e.textContent = text; return e; };
const span = (s) => (s < 1 ? `${Math.round(s * 1000)} ms` : s < 60 ? `${s.toFixed(1)} s` : s < 3600 ? `${Math.floor(s / 60)} m ${Math.round(s % 60)} s` : `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} m`);

const wide = (text) => text.length * 6.2;
const fitting = (room, ...texts) => texts.find((text) => wide(text) <= room) ?? texts.at(-1);

class Timeline extends HTMLElement {
  static observedAttributes = ["data-picture", "data-at"];
  connectedCallback() {
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this);
    // What goes on grows while it is looked at.
    this.tick = setInterval(() => { if (this.live && !document.hidden) this.draw(); }, 1000);
  }
  disconnectedCallback() { this.watch.disconnect(); clearInterval(this.tick); }
  attributeChangedCallback(name) { if (name === "data-picture") this.read = Date.now(); if (this.isConnected) this.draw(); }
  scale(times, width, left, busy) {
    // Idle stretches take a fixed width, so that a night between two bursts does not hide both.
    const gaps = times.slice(1).map((t, i) => t - times[i]);
    const total = times.at(-1) - times[0] || 1;
    const long = Math.max(total * 0.22, 1.5);
    const cut = gaps.map((g, i) => g > long && (!busy(times[i], times[i + 1]) || g > total * 0.8));
    const kept = gaps.reduce((a, g, i) => a + (cut[i] ? 0 : g), 0) || 1;
    const n = cut.filter(Boolean).length, gapWidth = Math.min(110, (width * 0.4) / Math.max(n, 1));
    const unit = (width - n * gapWidth) / kept;
    const at = [left];
    gaps.forEach((g, i) => at.push(at[i] + (cut[i] ? gapWidth : g * unit)));
    const x = (t) => { let i = times.findIndex((v) => v >= t); if (i <= 0) return i < 0 ? at.at(-1) : at[0]; const f = (t - times[i - 1]) / (times[i] - times[i - 1] || 1); return at[i - 1] + f * (at[i] - at[i - 1]); };
    return { x, breaks: cut.map((c, i) => c && { from: at[i], to: at[i + 1], s: gaps[i] }).filter(Boolean) };
  }
  draw() {
    const { events, now: then, live } = JSON.parse(this.dataset.picture), now = then + (Date.now() - this.read) / 1000;
    this.live = live;
    const width = Math.max(this.clientWidth - 28, 240), narrow = width < 480, left = narrow ? 84 : 132, right = 26;
    if (!events.length) return this.replaceChildren();
    const times = [...new Set([...events.map((e) => e.t), ...(live ? [now] : [])])].sort((a, b) => a - b);
    const claims = [];
    let waits = [], open = null, waiting = null;
    const done = new Map();
    for (const e of events) {
      if (e.kind === "transition" && e.to === "working") { open = { fence: e.fence, worker: e.worker, from: e.t, to: null, steps: [], chunks: [], says: [], how: "run" }; claims.push(open); if (waiting) { waits.at(-1).until = e.t; waiting = null; } }
      else if (e.kind === "transition" && open) { open.to = e.t; open.how = e.by === "recovery" ? "lost" : e.to; open = null; if (e.to.endsWith("required")) { waits.push({ from: e.t, to: null }); waiting = true; } }
      else if (e.kind === "transition" && e.to === "submitted" && waiting) { waits.at(-1).to = e.t; }
      // A copy begins with the steps that the original had stored: no claim of this task did them.
      else if (!open && !e.fence && e.kind === "step" && e.skind === "step") done.set(e.name, { name: e.name, kind: e.skind });
      else if (open && e.kind === "step" && e.skind === "step") { const from = Math.max(e.from ?? open.steps.at(-1)?.to ?? open.from, open.from); open.steps.push({ name: e.name, kind: e.skind, from, to: e.t, seq: e.seq }); }
      else if (open && e.kind === "artifact") open.chunks.push(e);
      else if (open && e.kind === "message" && e.by === "worker") open.says.push(e);
    }
    const end = live ? now : times.at(-1);
    const { x, breaks } = this.scale(times, width - left - right, left, (a, b) => claims.some((c) => c.how !== "lost" && c.from <= a && (c.to ?? end) >= b));
    for (const w of waits) w.to ??= end;
    const client = events.filter((e) => e.kind === "message" && e.by === "client");
    // On a phone what is said of a lane is below it, a line each; elsewhere beside it where there is room.
    const top = 30, row = narrow ? 62 : 44, laneH = 24, rows = claims.length + 1;
    const height = top + rows * row + 20, foot = height - 14;
    const svg = el("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": `Timeline: ${claims.length} claims, ${events.length} events` });
    const defs = el("defs"), p = el("pattern", { id: "hatch", width: 7, height: 7, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" });
    p.append(el("line", { x1: 0, y1: 0, x2: 0, y2: 7, class: "tl-hatch" })); defs.append(p); svg.append(defs);
    // axis
    const span0 = times[0];
    const inGap = (px) => breaks.some((b) => (px > b.from + 2 && px < b.to - 2) || Math.abs(px - (b.from + b.to) / 2) < 52);
    let lastX = -99;
    const step = [0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 900, 3600, 14400, 86400].find((s) => ((end - span0) / s) < 16) ?? 604800;
    for (let t = 0; t <= end - span0 + 1e-6; t += step) { const px = x(span0 + t); if (inGap(px) || px - lastX < 46) continue; lastX = px; svg.append(el("line", { x1: px, x2: px, y1: 20, y2: foot - 4, class: "tl-grid" }), el("text", { x: px, y: 13, "text-anchor": "middle", class: "tl-axis" }, t === 0 ? "0" : span(t))); }
    for (const b of breaks) { const m = (b.from + b.to) / 2; svg.append(el("line", { x1: m, x2: m, y1: 20, y2: foot - 4, class: "tl-gapline" }), el("text", { x: m, y: 13, "text-anchor": "middle", class: "tl-gap" }, fitting(b.to - b.from + 24, `idle ${span(b.s)}`, span(b.s)))); }
    // client lane
    let y = top;
    svg.append(el("text", { x: 0, y: y + 16, class: "tl-name" }, "Client"));
    for (const w of waits) { const a = x(w.from), b = x(w.to); svg.append(el("rect", { x: a, y: y + 4, width: Math.max(b - a, 2), height: 16, rx: 4, class: "tl-wait" })); if (b - a > 96) svg.append(el("text", { x: (a + b) / 2, y: y + 16, "text-anchor": "middle", class: "tl-waittext" }, `asked, ${span(w.to - w.from)}`)); }
    for (const m of client) { const c = el("circle", { cx: x(m.t), cy: y + 12, r: 5.5, class: "tl-msg user" }); c.append(el("title", {}, m.text)); svg.append(c); }
    // claims
    const chars = narrow ? 11 : 16;
    claims.forEach((c, i) => {
      y = top + (i + 1) * row;
      const a = x(c.from), b = x(c.to ?? end), lost = c.how === "lost";
      svg.append(el("text", { x: 0, y: y + 10, class: "tl-name" }, `Claim ${c.fence}`), el("text", { x: 0, y: y + 24, class: "tl-sub" }, c.worker.length > chars ? c.worker.slice(0, chars - 1) + "…" : c.worker));
      svg.append(el("rect", { x: a, y, width: Math.max(b - a, 3), height: laneH, rx: 5, class: `tl-lane ${lost ? "lost" : "run"}` }));
      // what earlier claims had stored comes back at once
      const back = [...done.values()].filter((s) => s.kind === "step");
      if (back.length) {
        const all = `kept: ${back.map((s) => s.name).join(", ")}`, some = `kept: ${back.length} steps`, label = fitting(width - left, all, some);
        const beside = !narrow && a - 8 - wide(label) >= left, end = Math.max(a + 2, wide(label)) > width - wide(label);
        const text = el("text", beside ? { x: a - 8, y: y + 16, "text-anchor": "end", class: "tl-ghosttext" } : { x: end ? width : a + 2, y: y + laneH + 18, "text-anchor": end ? "end" : "start", class: "tl-ghosttext" }, label);
        if (label !== all) text.append(el("title", {}, all));
        svg.append(text);
      }
      for (const s of c.steps) { const sa = x(s.from), sb = x(s.to); const r = el("rect", { x: sa + 1, y: y + 2, width: Math.max(sb - sa - 2, 3), height: laneH - 4, rx: 4, class: "tl-step" }); r.append(el("title", {}, `${s.name}: ${span(s.to - s.from)}`)); svg.append(r); if (sb - sa > s.name.length * 6.6 + 8) svg.append(el("text", { x: sa + 8, y: y + 16, class: "tl-steptext" }, s.name)); if (s.kind === "step") done.set(s.name, s); }
      for (const k of c.chunks) svg.append(el("rect", { x: x(k.t) - 1.2, y: y + laneH + 3, width: 2.4, height: 5, rx: 1, class: "tl-chunk" }));
      for (const m of c.says) { const d = el("circle", { cx: x(m.t), cy: y + laneH + 5.5, r: 4, class: "tl-msg" }); d.append(el("title", {}, m.text)); svg.append(d); }
      if (lost) { svg.append(el("path", { d: `M${b - 5} ${y + 7}l10 10m0-10l-10 10`, class: "tl-dead" }), el("text", !narrow && b + 172 < width ? { x: b + 12, y: y + 16, class: "tl-deadtext" } : { x: width, y: y + laneH + (narrow ? 32 : 14), "text-anchor": "end", class: "tl-deadtext" }, "worker lost, lease expired")); }
      const next = claims[i + 1];
      if (lost && next) svg.append(el("path", { d: `M${b} ${y + laneH + 2}V${y + row - 8}q0 8 8 8H${x(next.from) - 2}`, class: "tl-arrow" }));
    });
    // time travel
    const at = Number(this.dataset.at), there = events.find((e) => e.seq === at) ?? events.at(-1), px = x(there.t);
    if (at < events.at(-1).seq) svg.append(el("rect", { x: px, y: 20, width: width - px, height: foot - 20, class: "tl-future" }));
    // The line stands at the time of an event, the slider at its number: the number is with both.
    const last = Number(this.dataset.last), label = `event ${there.seq} of ${last}${there.seq === last ? ", now" : ""}`, half = wide(label) / 2;
    svg.append(el("text", { x: Math.min(Math.max(px, half), width - half), y: height - 2, "text-anchor": "middle", class: "tl-at" }, label));
    svg.append(el("line", { x1: px, x2: px, y1: 18, y2: foot, class: "tl-now" }), el("circle", { cx: px, cy: 20, r: 5, class: "tl-knob" }));
    const hit = el("rect", { x: left, y: 0, width: width - left, height, class: "tl-hit" });
    // The playhead follows the pointer, and the slider below follows the playhead.
    this.go = (event) => { const box = this.firstChild.getBoundingClientRect(), want = ((event.clientX - box.left) * width) / box.width; const near = events.reduce((m, e) => (Math.abs(x(e.t) - want) <= Math.abs(x(m.t) - want) ? e : m)); if (near.seq !== Number(this.dataset.at)) { this.dataset.at = near.seq; this.dispatchEvent(new CustomEvent("hf-travel", { bubbles: true, detail: near.seq })); } };
    this.onpointerdown = (event) => { if (event.button === 0 && event.target.classList.contains("tl-hit")) { this.setPointerCapture(event.pointerId); this.go(event); } };
    this.onpointermove = (event) => { if (this.hasPointerCapture(event.pointerId)) this.go(event); };
    svg.append(hit);
    this.replaceChildren(svg);
  }
}
customElements.define("hf-timeline", Timeline);
