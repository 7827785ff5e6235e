// The neighbourhood of an entity on a canvas. The list beside it has the same, for those who cannot
// see or use the picture.
for (const part of ["dispatch", "quadtree", "timer", "force"]) await import(`/studio/static/d3-${part}.min.js`);
const { forceCenter, forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;

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
    pen.strokeStyle = colour("--line"); pen.fillStyle = colour("--ink3"); pen.font = "10.5px Inter, sans-serif"; pen.textAlign = "center";
    for (const link of this.links) {
      const [ax, ay] = this.at(link.source), [bx, by] = this.at(link.target);
      pen.beginPath(); pen.moveTo(ax, ay); pen.lineTo(bx, by); pen.stroke();
      if (this.links.length <= 60) pen.fillText(link.type, (ax + bx) / 2, (ay + by) / 2 - 3);
    }
    for (const node of this.nodes) {
      const [x, y] = this.at(node), first = node.id === this.start;
      pen.beginPath(); pen.arc(x, y, first ? 9 : 6, 0, 7);
      pen.fillStyle = colour(first ? "--accent" : "--blue"); pen.fill();
      if (this.nodes.length <= 80 || first) { pen.fillStyle = colour("--ink"); pen.font = `${first ? 620 : 500} 12px Inter, sans-serif`; pen.fillText(node.name.length > 24 ? node.name.slice(0, 23) + "…" : node.name, x, y - 12); pen.font = "10.5px Inter, sans-serif"; }
    }
    canvas.onclick = (event) => {
      const box = canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      const near = this.nodes.find((node) => { const [nx, ny] = this.at(node); return Math.hypot(nx - x, ny - y) < 12; });
      if (near) location.href = `?from=${encodeURIComponent(near.id)}${this.dataset.own}`;
    };
  }
}
customElements.define("hf-graph", Graph);
