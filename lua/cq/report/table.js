"use strict";
// table: trials of a study in rows that can be sorted and filtered; a click opens one.

const SHOWN = 500;                       // rows on the page at once

// "young>1e4 state=done leg": each word is a comparison of a column, or stands somewhere in the row
function matcher(words, columns) {
  const tests = words.split(/\s+/).filter(Boolean).map((word) => {
    const found = word.match(/^(.+?)(<=|>=|=|<|>)(.*)$/), at = found ? columns.indexOf(found[1]) : -1;
    if (at < 0) return (row) => row.some((cell) => String(cell).toLowerCase().includes(word.toLowerCase()));
    const [, , sign, wanted] = found, number = Number(wanted);
    if (sign === "=") return (row) => String(row[at]) === wanted || (wanted !== "" && row[at] === number);
    return (row) => typeof row[at] === "number" && { "<": row[at] < number, ">": row[at] > number, "<=": row[at] <= number, ">=": row[at] >= number }[sign];
  });
  return (row) => tests.every((test) => test(row));
}

// fills a table; the lines of its body
function rowsOf(table, heads, rows) {
  table.replaceChildren();
  const head = table.createTHead().insertRow(), body = table.createTBody();
  for (const name of heads) add(head, "th", name);
  return rows.map((row) => {
    const line = body.insertRow();
    for (const cell of row) add(line, "td", brief(cell));
    return line;
  });
}

class Trials {
  // given: { columns, rows, objective, sign }; open(row) where one clicks
  constructor(parent, given, open) {
    this.given = given;
    this.open = open;
    this.by = given.objective;
    this.down = given.sign < 0;
    this.words = "";
    this.filter = parent.querySelector("input");
    this.filter.oninput = () => this.draw(this.words = this.filter.value);
    this.count = parent.querySelector("output");
    this.table = parent.querySelector("table");
    this.lines = parent.querySelector("canvas");
    new ResizeObserver(() => this.parallel()).observe(this.lines);
    this.draw();
  }

  draw() {
    const { columns, rows } = this.given, { by, down, table } = this;
    const order = (x) => (x === null || x === undefined || x === "" ? 1 : 0);
    this.found = rows.filter(matcher(this.words, columns)).sort((a, b) => order(a[by]) - order(b[by])
      || (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : 0) * (down ? -1 : 1) || a[0] - b[0]);
    this.count.textContent = `${this.found.length} of ${rows.length} trials` + (this.found.length > SHOWN ? `, the first ${SHOWN} shown` : "");
    const shown = this.found.slice(0, SHOWN);
    rowsOf(table, columns.map((name, k) => name + (k === by ? (down ? " ▾" : " ▴") : "")), shown).forEach((line, k) => {
      line.onclick = () => this.select(shown[k]);
      line.classList.toggle("chosen", shown[k] === this.chosen);
    });
    table.querySelectorAll("th").forEach((cell, k) => {
      cell.onclick = () => this.draw([this.by, this.down] = [k, k === this.by ? !this.down : false]);
    });
    this.parallel();
  }

  select(row) {
    this.chosen = row;
    this.draw();
    const line = this.table.querySelector(".chosen");
    if (line) line.scrollIntoView({ block: "nearest" });
    this.open(row);
  }

  // parallel coordinates of the rows that were found: parameters, then the objective
  parallel() {
    const { axes, objective, rows } = this.given, { lines, found } = this, all = axes.concat(objective);
    const scale = window.devicePixelRatio || 1, wide = lines.clientWidth, high = lines.clientHeight;
    if (!wide) return;
    [lines.width, lines.height] = [wide * scale, high * scale];
    const pen = lines.getContext("2d"), scales = all.map((k) => {
      const cells = rows.map((row) => row[k]).filter((x) => x !== null && x !== undefined && x !== "");
      if (cells.every((x) => typeof x === "number")) {
        const lower = cells.reduce((a, b) => Math.min(a, b), Infinity), upper = cells.reduce((a, b) => Math.max(a, b), -Infinity);
        const log = lower > 0 && upper > 100 * lower ? Math.log : (x) => x;        // what spans decades is seen by its logarithm
        return { at: (x) => (upper > lower ? (log(x) - log(lower)) / (log(upper) - log(lower)) : 0.5), ends: [brief(lower), brief(upper)] };
      }
      const names = [...new Set(cells)].sort();
      return { at: (x) => (names.length > 1 ? names.indexOf(x) / (names.length - 1) : 0.5), ends: [names[0], names[names.length - 1]] };
    });
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    const px = (i) => 44 + (wide - 88) * (all.length > 1 ? i / (all.length - 1) : 0.5), py = (share) => high - 22 - (high - 52) * share;
    const last = scales.length - 1, line = (row, colour, width, strength = 1) => {
      pen.globalAlpha = strength;
      pen.strokeStyle = colour;
      pen.lineWidth = width;
      pen.beginPath();
      all.forEach((k, i) => pen.lineTo(px(i), py(scales[i].at(row[k]))));
      pen.stroke();
    };
    for (const row of found.slice(0, 2000).reverse()) {
      const value = row[objective];
      if (typeof value !== "number") continue;
      const share = scales[last].at(value), good = (this.given.sign > 0 ? 1 - share : share) ** 3;
      line(row, `color-mix(in oklab, #7c9cc4, #d1603d ${100 * good}%)`, 1, 0.2 + 0.6 * good);
    }
    if (this.chosen && typeof this.chosen[objective] === "number") line(this.chosen, INK(), 2.5);
    pen.globalAlpha = 1;
    pen.fillStyle = INK();
    pen.textAlign = "center";
    all.forEach((k, i) => {
      pen.fillRect(px(i) - 0.5, py(1), 1, py(0) - py(1));
      pen.fillText(this.given.columns[k], px(i), 12);
      pen.fillText(scales[i].ends[1], px(i), 26);
      pen.fillText(scales[i].ends[0], px(i), high - 8);
    });
  }
}
