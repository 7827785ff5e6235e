// The neighbourhood of an entity on a canvas. The list beside it has the same, for those who cannot
// see or use the picture.
for (const part of ["dispatch", "quadtree", "timer", "force"]) await import(`/studio/static/d3-${part}.min.js`);
const { forceCenter, forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;

class Graph extends HTMLElement {
  static observedAttributes = ["data-picture"];
  connectedCallback() {
    this.watch = new ResizeObserver(() => this.draw());
    this.watch.observe(this);
    this.scheme = matchMedia("(prefers-color-scheme:dark)");
    this.again = () => this.draw();
    this.scheme.addEventListener("change", this.again);
    this.theme = new MutationObserver(this.again);
    this.theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.lay();
  }
  disconnectedCallback() { this.watch.disconnect(); this.theme.disconnect(); this.scheme.removeEventListener("change", this.again); }
  attributeChangedCallback() { if (this.isConnected) this.lay(); }
  lay() {
    const { nodes, links, start } = JSON.parse(this.dataset.picture);
    this.start = start;
    this.nodes = nodes.map((node) => ({ ...node }));
    const known = new Set(nodes.map((node) => node.id));
    this.links = links.filter((link) => known.has(link.source) && known.has(link.target)).map((link) => ({ ...link }));
    const simulation = forceSimulation(this.nodes)
      .force("link", forceLink(this.links).id((node) => node.id).distance(90))
      .force("charge", forceManyBody().strength(-260))
      .force("x", forceX().strength(0.06)).force("y", forceY().strength(0.08))
      .force("apart", forceCollide(40))
      .force("center", forceCenter())
      .stop();
    const rounds = Math.max(60, Math.min(300, Math.floor(60000 / (this.nodes.length + 1))));
    simulation.tick(rounds);
    this.draw();
  }
  draw() {
    if (!this.nodes) return;
    const width = Math.max(this.clientWidth, 200), height = Math.max(320, Math.min(560, width * 0.7)), ratio = devicePixelRatio || 1;
    const canvas = this.canvas ?? (this.canvas = this.appendChild(document.createElement("canvas")));
    canvas.width = width * ratio; canvas.height = height * ratio;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `${this.nodes.length} entities; the list beside the picture has them all`);
    const pen = canvas.getContext("2d"), colour = (name) => getComputedStyle(this).getPropertyValue(name).trim();
    const xs = this.nodes.map((node) => node.x), ys = this.nodes.map((node) => node.y);
    const [left, right, top, bottom] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const scale = Math.min((width - 160) / (right - left || 1), (height - 90) / (bottom - top || 1), 1.6);
    this.at = (node) => [width / 2 + (node.x - (left + right) / 2) * scale, height / 2 + (node.y - (top + bottom) / 2) * scale];
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const ground = colour("--card") || colour("--bg"), labels = [...new Set(this.nodes.map((node) => node.label))].slice(0, 6);
    const shade = (node) => colour(["--blue", "--violet", "--amber", "--green", "--red", "--ink3"][Math.max(labels.indexOf(node.label), 0)]);
    // Words stand on the ground, so that no line runs through them.
    const write = (text, x, y) => { pen.strokeStyle = ground; pen.lineWidth = 4; pen.strokeText(text, x, y); pen.fillText(text, x, y); };
    pen.font = "10.5px Inter, sans-serif"; pen.textAlign = "center"; pen.lineJoin = "round";
    for (const link of this.links) {
      const [ax, ay] = this.at(link.source), [bx, by] = this.at(link.target), turn = Math.atan2(by - ay, bx - ax);
      const gap = link.target.id === this.start ? 12 : 9, [ex, ey] = [bx - gap * Math.cos(turn), by - gap * Math.sin(turn)];
      pen.strokeStyle = pen.fillStyle = colour("--ink3"); pen.lineWidth = 1;
      pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(ex, ey); pen.stroke();
      pen.beginPath(); pen.moveTo(ex, ey);
      for (const side of [-0.45, 0.45]) pen.lineTo(ex - 8 * Math.cos(turn + side), ey - 8 * Math.sin(turn + side));
      pen.fill();
      // Labels of crossing lines do not stand in one place.
      if (this.links.length <= 60) { const part = [0.28, 0.5, 0.66][this.links.indexOf(link) % 3]; write(link.type, ax * (1 - part) + bx * part, ay * (1 - part) + by * part + 3); }
    }
    for (const node of this.nodes) {
      const [x, y] = this.at(node), first = node.id === this.start;
      pen.beginPath(); pen.arc(x, y, first ? 9 : 6, 0, 7);
      pen.fillStyle = shade(node); pen.fill();
      if (first) { pen.strokeStyle = colour("--accent"); pen.lineWidth = 3; pen.stroke(); }
      if (this.nodes.length <= 80 || first) { pen.fillStyle = colour("--ink"); pen.font = `${first ? 620 : 500} 12px Inter, sans-serif`; write(node.name.length > 24 ? node.name.slice(0, 23) + "…" : node.name, x, y - 14); pen.font = "10.5px Inter, sans-serif"; }
      if (node.more) { pen.fillStyle = colour("--ink3"); write(`+${node.more}`, x, y + 20); }
    }
    pen.textAlign = "left";
    let from = 14;
    for (const label of labels) {
      pen.beginPath(); pen.arc(from, height - 14, 4, 0, 7); pen.fillStyle = shade({ label }); pen.fill();
      pen.fillStyle = colour("--ink3"); pen.fillText(label, from + 9, height - 10.5);
      from += 26 + pen.measureText(label).width;
    }
    canvas.onclick = (event) => {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      const near = this.nodes.find((node) => { const [nx, ny] = this.at(node); return Math.hypot(nx - x, ny - y) < 12; });
      if (near) location.href = `?from=${encodeURIComponent(near.id)}${this.dataset.own}`;
    };
  }
}
customElements.define("hf-graph", Graph);
