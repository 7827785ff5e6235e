// Figures over time, drawn by uPlot. The list below each chart has the newest values as text.
const clock = (seconds, step) => new Date(seconds * 1000).toTimeString().slice(0, step < 60 ? 8 : 5);
class Chart extends HTMLElement {
  static observedAttributes = ["data-chart"];
  connectedCallback() {
    this.watch = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.watch.observe(this);
    this.again = () => this.draw();
    this.scheme = matchMedia("(prefers-color-scheme:dark)");
    this.scheme.addEventListener("change", this.again);
    this.theme = new MutationObserver(this.again);
    this.theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    this.draw();
  }
  disconnectedCallback() { this.watch.disconnect(); this.theme.disconnect(); this.scheme.removeEventListener("change", this.again); this.plot?.destroy(); }
  attributeChangedCallback() {
    if (!this.plot) return;
    const { times, series } = JSON.parse(this.dataset.chart);
    if (series.length + 1 === this.plot.series.length) this.plot.setData([times, ...series.map((one) => one.values)]);
    else this.draw();
  }
  size() { return { width: Math.max(this.clientWidth, 200), height: 150 }; }
  draw() {
    const { times, series, unit } = JSON.parse(this.dataset.chart), style = getComputedStyle(document.documentElement);
    const ink = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: ink("--ink3"), grid: { stroke: ink("--line2"), width: 1 }, ticks: { stroke: ink("--line"), width: 1 }, font: "11px Inter" };
    this.plot?.destroy();
    this.plot = new window.uPlot({
      ...this.size(), legend: { show: false }, cursor: { show: false }, padding: [8, 22, 0, 0],
      scales: { x: { range: (_, low, high) => [Math.min(low, high - 60), high] }, y: { range: (_, low, high) => [0, Math.max(high ?? 1, 1) * 1.1] } },
      axes: [{ ...axis, space: 64, values: (_, all, _axis, _space, step) => all.map((one) => clock(one, step)) }, { ...axis, size: 58, values: (_, all) => all.map((one) => (Number.isInteger(one) || unit ? `${+one.toFixed(1)}${unit ? " " + unit : ""}` : "")) }],
      series: [{}, ...series.map((one) => ({ label: one.name, stroke: ink(`--${one.colour}`), width: 1.6, points: { show: times.length < 3 } }))],
    }, [times, ...series.map((one) => one.values)], this);
  }
}
customElements.define("hf-chart", Chart);
