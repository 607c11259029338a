"use strict";
// curves: lines over iterations or time on a canvas, with a cursor that follows the moment which is shown.

const INK = () => getComputedStyle(document.body).color;

// a colour of lines as it is seen on the page: lighter on a dark one
const onBack = (colour) => (isDark() ? `color-mix(in srgb, ${colour}, white 35%)` : colour);

// round numbers of an axis
function ticksOf(lower, upper, count) {
  const raw = (upper - lower) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 5].find((k) => k * power >= raw) || 10), out = [];
  for (let k = Math.ceil(lower / step - 1e-9); k * step <= upper + 1e-9 * step; k++) out.push(k * step);
  return out;
}

const add = (parent, kind, text = "") => Object.assign(parent.appendChild(document.createElement(kind)), { textContent: text });

const brief = (x) => (x === null || x === undefined || Number.isNaN(x) ? "" : typeof x !== "number" ? String(x) : String(Number(x.toPrecision(4))));

class Curves {
  // given: { title, unit, x, x_label, series: [{ name, x?, y, lower?, upper? }], follows }; pick(x) where one clicks
  constructor(parent, given, colours, pick) {
    this.given = given;
    this.colours = colours;
    const figure = add(parent, "figure");
    add(figure, "figcaption", given.title + (given.unit ? ` [${given.unit}]` : ""));
    const box = add(figure, "div");
    this.canvas = add(box, "canvas");
    this.cursor = add(box, "i");
    this.cursor.hidden = true;
    const legend = add(figure, "p");
    this.hidden = new Set();
    given.series.forEach((series, k) => {
      if (given.series.length < 2) return;
      const label = add(legend, "button", series.name);
      label.style.setProperty("--line", this.colours[k % this.colours.length]);
      label.onclick = () => {
        this.hidden[this.hidden.has(k) ? "delete" : "add"](k);
        label.classList.toggle("off", this.hidden.has(k));
        this.draw();
      };
    });
    if (pick) {
      this.canvas.onpointerdown = (event) => this.canvas.setPointerCapture(event.pointerId);
      this.canvas.onpointermove = this.canvas.onclick = (event) => {
        if (event.type === "click" || event.buttons) pick(this.xOf(event.offsetX));
      };
    }
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  colourOf(k) { return onBack(this.colours[k % this.colours.length]); }

  range() {
    const xs = [Infinity, -Infinity], ys = [Infinity, -Infinity];
    const hold = (range, value) => {
      if (Number.isFinite(value)) [range[0], range[1]] = [Math.min(range[0], value), Math.max(range[1], value)];
    };
    this.given.series.forEach((series, k) => {
      if (this.hidden.has(k)) return;
      for (const x of series.x || this.given.x) hold(xs, x);
      for (const list of [series.y, series.lower || [], series.upper || []]) for (const y of list) hold(ys, y);
    });
    for (const range of [xs, ys]) {
      if (range[0] > range[1]) [range[0], range[1]] = [0, 1];
      if (range[0] === range[1]) [range[0], range[1]] = [range[0] - 0.5, range[1] + 0.5];
    }
    const air = 0.06 * (ys[1] - ys[0]);
    return [xs, [ys[0] - air, ys[1] + air]];
  }

  xOf(pixel) { return this.xs[0] + (this.xs[1] - this.xs[0]) * (pixel - this.left) / (this.canvas.clientWidth - this.left - 8); }

  pixelOf(x) { return this.left + (this.canvas.clientWidth - this.left - 8) * (x - this.xs[0]) / (this.xs[1] - this.xs[0]); }

  // puts the line of the moment that is shown; an element of its own, so that the curves are not drawn for it
  point(x = this.at) {
    this.at = x;
    this.cursor.hidden = x === undefined || !this.xs;
    // a moment before the first point, as the start where a curve has one for each control step, is at the axis
    if (!this.cursor.hidden) this.cursor.style.left = this.pixelOf(Math.min(Math.max(x, this.xs[0]), this.xs[1])) + "px";
  }

  draw() {
    const { canvas, given } = this, scale = window.devicePixelRatio || 1, wide = canvas.clientWidth, high = canvas.clientHeight;
    if (!wide) return;
    [canvas.width, canvas.height] = [wide * scale, high * scale];
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    const [xs, ys] = [this.xs, this.ys] = this.range(), labels = ticksOf(...ys, Math.max(2, high / 34));
    this.left = Math.max(52, ...labels.map((y) => 12 + pen.measureText(brief(y)).width));
    const px = (x) => this.pixelOf(x);
    const py = (y) => high - 20 - (high - 26) * (y - ys[0]) / (ys[1] - ys[0]);
    pen.fillStyle = pen.strokeStyle = INK();
    pen.globalAlpha = 0.14;
    for (const y of labels) pen.fillRect(this.left, py(y), wide - this.left - 8, 1);
    pen.globalAlpha = 0.75;
    pen.textAlign = "right";
    for (const y of labels) pen.fillText(brief(y), this.left - 5, py(y) + 4);
    pen.textAlign = "center";
    for (const x of ticksOf(...xs, Math.max(2, wide / 80))) pen.fillText(brief(x), Math.min(Math.max(px(x), this.left), wide - 16), high - 5);
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.rect(this.left, 0, wide - this.left, high - 18);
    pen.save();
    pen.clip();
    given.series.forEach((series, k) => {
      if (this.hidden.has(k)) return;
      const x = series.x || given.x;
      pen.strokeStyle = pen.fillStyle = this.colourOf(k);
      if (series.lower) {
        pen.beginPath();
        x.forEach((at, i) => pen.lineTo(px(at), py(series.lower[i])));
        [...x].reverse().forEach((at, i) => pen.lineTo(px(at), py(series.upper[x.length - 1 - i])));
        pen.globalAlpha = 0.2;
        pen.fill();
        pen.globalAlpha = 1;
      }
      pen.lineWidth = given.series.length > 12 ? 1 : 1.6;
      pen.beginPath();
      let drawn = false;
      series.y.forEach((y, i) => {
        if (y === null) drawn = false;
        else if (drawn) pen.lineTo(px(x[i]), py(y));
        else pen.moveTo(px(x[i]), py(y));
        drawn = drawn || y !== null;
      });
      const isGap = (y) => y === null || y === undefined;
      if (!series.points) pen.stroke();
      // a point without a neighbour has no line
      series.y.forEach((y, i) => {
        const isAlone = isGap(series.y[i - 1]) && isGap(series.y[i + 1]);
        if (!isGap(y) && (series.points || isAlone)) pen.fillRect(px(x[i]) - 1.5, py(y) - 1.5, 3, 3);
      });
    });
    pen.restore();
    this.point();
  }
}
