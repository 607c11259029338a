"use strict";
// page: what is shown, and how it is moved. The address may say what: gait.html#run=2&frame=40&pick=17&colour=speed

const $ = (selector) => document.querySelector(selector);
const words = new URLSearchParams(location.hash.slice(1));
const shown = { run: 0, moment: 0, playing: false, colour: -1, picked: -1, drawn: 0, ms: 0, errors: [], ready: false };
let data, view, curves = [], trials;

// What tests and other programs read: the attribute data-state of <html>.
function tell() {
  const run = data && data.runs[shown.run], film = run && run.film && run.film.frames ? run.film : null, frame = Math.round(shown.moment);
  const state = { ready: shown.ready, errors: shown.errors, run: run ? run.name : null, frame, frames: film ? film.times.length : 0,
    particles: film ? film.count : 0, drawn: shown.drawn, ms: shown.ms, status: shown.status, iteration: shown.iteration, opened: shown.opened, requests: performance.getEntriesByType("resource").length };
  if (film) state.checksum = film.frames[frame].reduce((sum, level) => sum + level, 0);
  if (film && shown.picked >= 0) {
    state.picked = { particle: film.order[shown.picked] + 1, path: film.frames.map((_, f) => placeOf(film, f, shown.picked)),
      values: film.channels.map((channel) => valueOf(channel, frame, shown.picked)) };
  }
  document.documentElement.dataset.state = JSON.stringify(state);
}

function trouble(problem) {
  shown.errors.push(String(problem.message || problem));
  $("#trouble").hidden = false;
  $("#trouble").textContent = shown.errors.join("; ");
  tell();
}

const isDark = () => document.documentElement.classList.contains("dark");
const filmOf = () => data && data.runs[shown.run] && data.runs[shown.run].film;

function paint() {
  const film = filmOf();
  if (!view || !film || !film.frames || !film.frames.length) return;
  const begun = performance.now();
  view.draw(shown.moment, shown.colour, isDark());
  view.gl.readPixels(0, 0, 1, 1, view.gl.RGBA, view.gl.UNSIGNED_BYTE, new Uint8Array(4));
  shown.ms = performance.now() - begun;
  shown.drawn++;
}

function timeOf(film) {
  const frame = Math.floor(shown.moment), next = Math.min(frame + 1, film.times.length - 1);
  return film.times[frame] + (shown.moment - frame) * (film.times[next] - film.times[frame]);
}

function setMoment(moment) {
  const film = filmOf();
  if (!film || !film.frames || !film.frames.length) return;
  shown.moment = Math.max(0, Math.min(film.times.length - 1, moment));
  $("#scrub").value = shown.moment;
  $("#time").textContent = `t = ${timeOf(film).toFixed(3)}`;
  for (const one of curves) if (one.given.follows) one.draw(timeOf(film));
  tellPicked();
  paint();
  if (!shown.playing) tell();
}

// the moment of a time
function momentAt(time) {
  const { times } = filmOf();
  let frame = times.findIndex((t) => t > time) - 1;
  if (frame < -1) frame = times.length - 1;
  frame = Math.max(0, frame);
  const next = Math.min(frame + 1, times.length - 1), step = times[next] - times[frame];
  return frame + (step > 0 ? Math.max(0, Math.min(1, (time - times[frame]) / step)) : 0);
}

function play(on = !shown.playing) {
  const film = filmOf();
  if (!film || !film.frames || !film.frames.length) return;
  shown.playing = on;
  $("#play").textContent = on ? "❚❚" : "▶";
  if (!on) return tell();
  if (shown.moment >= film.times.length - 1) shown.moment = 0;
  let last = performance.now();
  requestAnimationFrame(function step(now) {
    if (!shown.playing) return;
    const time = timeOf(film) + Number($("#speed").value) * Math.max(0, now - last) / 1000, end = film.times[film.times.length - 1];
    last = now;
    setMoment(time > end ? 0 : momentAt(time));
    requestAnimationFrame(step);
  });
}

function facts(list, entries) {
  list.replaceChildren();
  for (const [name, value] of entries) {
    list.appendChild(document.createElement("dt")).textContent = name;
    list.appendChild(document.createElement("dd")).textContent = brief(value);
  }
}

function tellPicked() {
  const film = filmOf(), box = $("#picked");
  box.hidden = shown.picked < 0;
  if (box.hidden) return;
  const frame = Math.round(shown.moment), place = placeOf(film, frame, shown.picked).slice(0, film.dim);
  facts(box, [["particle", film.order[shown.picked] + 1], ["place", place.map((x) => brief(x)).join(", ")],
    ...film.channels.map((channel) => [channel.label, valueOf(channel, frame, shown.picked)])]);
}

function legend() {
  const film = filmOf(), box = $("#legend"), channel = film.channels[shown.colour];
  box.replaceChildren();
  const mark = (colour, text) => {
    const swatch = box.appendChild(document.createElement("i"));
    swatch.style.background = colour;
    box.append(text);
  };
  const rgb = (c) => `rgb(${c.slice(0, 3).join(" ")})`, { categories, actuation } = data.palettes;
  if (!channel) {
    for (const group of film.groups.length > 1 && film.groups.length <= 8 ? film.groups : []) mark(group.colour, group.name);
    if (film.channels.some((c) => c.signal)) ["signal −", "signal +"].forEach((name, k) => mark(rgb(actuation[k]), name));
  } else if (channel.categories) channel.categories.forEach((name, k) => mark(rgb(categories[k % categories.length]), name));
  else {
    box.append(channel.label + (channel.unit ? ` [${channel.unit}]  ` : "  "), brief(channel.lower));
    box.appendChild(document.createElement("b")).style.background = `linear-gradient(90deg, ${data.palettes[channel.palette].map(rgb)})`;
    box.append(brief(channel.upper));
  }
}

async function openFilm(film) {
  const begun = performance.now();
  if (!film.frames) {
    $("#note").textContent = "decoding";
    await decodeFilm(film, (share) => ($("#note").textContent = `decoding ${Math.round(100 * share)} %`));
  }
  view = view || new View($("#picture canvas"), data.palettes);
  view.show(film, Boolean(data.live && view.film));
  shown.picked = words.has("pick") ? film.order.indexOf(Number(words.get("pick")) - 1) : -1;
  $("#scrub").max = film.times.length - 1;
  $("#colour").replaceChildren(new Option("groups", -1), ...film.channels.map((channel, k) => new Option(channel.label, k)));
  shown.colour = film.channels.findIndex((channel) => channel.label === words.get("colour"));
  $("#colour").value = shown.colour;
  const far = Math.hypot(...view.centres[view.centres.length - 1].map((x, d) => x - view.centres[0][d]));
  $("#follow").disabled = far === 0;
  $("#note").textContent = film.count === film.total ? `${film.count} particles` : `${film.count} of ${film.total} particles`;
  legend();
  shown.opened = shown.opened || Math.round(performance.now() - begun);
  setMoment(Math.min(Number(words.get("frame") || shown.moment), film.times.length - 1));
}

// what differs between runs, or all of one: rows of names, a column for each run
function compare() {
  const table = $("#parameters table"), runs = data.runs.slice(0, 12), names = [...new Set(runs.flatMap((run) => Object.keys(run.facts)))];
  table.replaceChildren();
  $("#parameters").hidden = data.runs.length === 0;
  $("#parameters h2").textContent = runs.length > 1 ? "What differs" : "Run";
  if (runs.length > 1) {
    const head = table.createTHead().insertRow();
    for (const name of ["", ...runs.map((run) => run.name)]) head.appendChild(document.createElement("th")).textContent = name;
  }
  const body = table.createTBody();
  for (const name of names.sort()) {
    const cells = runs.map((run) => brief(run.facts[name]));
    if (runs.length > 1 && cells.every((cell) => cell === cells[0])) continue;
    const line = body.insertRow();
    for (const cell of [name, ...cells]) line.insertCell().textContent = cell;
  }
}

function drawCurves(own) {
  curves = [];
  $("#curves").replaceChildren();
  for (const given of [...data.curves, ...own, ...(filmOf() ? filmOf().curves : [])]) {
    if (given.x && given.x.length === 0) continue;
    curves.push(new Curves($("#curves"), given, data.palettes.lines, given.follows && ((time) => { play(false); setMoment(momentAt(time)); })));
  }
}

async function openRun(k) {
  play(false);
  shown.run = k;
  const run = data.runs[k];
  $("#runs select").value = k;
  document.body.classList.toggle("bare", !run || !run.film);
  drawCurves(run ? run.curves : []);
  $("#script").hidden = !(run && run.script);
  $("#script pre").textContent = (run && run.script) || "";
  if (run && run.film) await openFilm(run.film);
  else $("#note").textContent = (run && run.note) || "";
  if (run && run.note && !run.film) $("#made").textContent = run.note;
}

async function openTrial(row) {
  const { columns, runs } = data.study, number = String(row[0]);
  $("#trial").hidden = false;
  $("#trial h2").textContent = `Trial ${number}`;
  facts($("#trial dl"), columns.map((name, k) => [name, row[k]]).filter(([, value]) => value !== "" && value !== null));
  if (runs[number] !== undefined) await openRun(runs[number]);
  else drawCurves(data.study.histories[number] || []);
  tell();
}

function listen() {
  const canvas = $("#picture canvas");
  let from = null, moved = false;
  canvas.onpointerdown = (event) => {
    canvas.setPointerCapture(event.pointerId);
    [from, moved] = [[event.offsetX, event.offsetY], false];
  };
  canvas.onpointermove = (event) => {
    if (!from || !view) return;
    const [dx, dy] = [event.offsetX - from[0], event.offsetY - from[1]];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    [from, moved] = [[event.offsetX, event.offsetY], true];
    view[event.shiftKey || event.buttons > 1 || filmOf().dim === 2 ? "pan" : "turn"](dx, dy);
    paint();
  };
  canvas.onpointerup = (event) => {
    if (from && !moved && view) {
      shown.picked = view.pick(event.offsetX, event.offsetY, Math.round(shown.moment));
      tellPicked();
      tell();
    }
    from = null;
  };
  canvas.oncontextmenu = () => false;
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    view.zoom(Math.exp(0.0015 * event.deltaY));
    paint();
  }, { passive: false });
  const change = { colour: (v) => { shown.colour = Number(v); legend(); }, follow: (_, on) => view.track(on, Math.round(shown.moment)), inner: (_, on) => { view.inner = on; } };
  for (const name in change) $("#" + name).onchange = ({ target }) => { change[name](target.value, target.checked); paint(); };
  const press = {
    play: () => play(), reset: () => { view.reset(); paint(); },
    theme: () => { theme(!isDark()); },
    shot: () => { paint(); canvas.toBlob((blob) => Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: document.title + ".png" }).click()); },
  };
  for (const name in press) $("#" + name).onclick = press[name];
  $("#scrub").oninput = ({ target }) => { play(false); setMoment(Number(target.value)); };
  $("#runs select").onchange = ({ target }) => openRun(Number(target.value)).catch(trouble);
  const keys = { " ": press.play, ArrowLeft: () => setMoment(Math.ceil(shown.moment) - 1), ArrowRight: () => setMoment(Math.floor(shown.moment) + 1),
    Home: () => setMoment(0), End: () => setMoment(Infinity), r: press.reset, d: press.theme, s: press.shot, f: () => $("#follow").click(), i: () => $("#inner").click() };
  document.addEventListener("keydown", (event) => {
    if (!keys[event.key] || /INPUT|SELECT|BUTTON/.test(event.target.tagName) && event.target.type !== "range" || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  new ResizeObserver(paint).observe(canvas);
}

// A run that goes on: progress, losses and the newest rollout come as events; buttons are commands.
function followRun({ token }) {
  const box = $("#live"), told = box.querySelector("output"), source = new EventSource("/events?token=" + token);
  box.hidden = false;
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  on("state", ({ status, iteration, iterations, loss }) => {
    told.textContent = [status, iterations ? `${iteration} of ${iterations}` : iteration, loss === undefined ? "" : "loss " + brief(loss)].filter(Boolean).join(", ");
    box.querySelector("[data-command=pause]").textContent = status === "paused" ? "go on" : "pause";
    Object.assign(shown, { status, iteration });
    if (!/running|paused|stopping/.test(status)) source.close();
    tell();
  });
  on("history", (curve) => {
    data.curves = [curve];
    drawCurves([]);
  });
  on("film", async ({ film, texts, iteration }) => {
    for (const old of document.querySelectorAll("[id^=blob-]")) old.remove();
    texts.forEach((content, k) => document.body.append(Object.assign(document.createElement("script"), { type: "text/plain", id: "blob-" + (k + 1), textContent: content })));
    const playing = shown.playing;
    data.runs = [{ name: "iteration " + iteration, film, curves: [], facts: {} }];
    await openRun(0).catch(trouble);
    play(playing);
  });
  source.onerror = () => (told.textContent = "the program has ended, or cannot be reached");
  for (const button of box.querySelectorAll("button")) {
    button.onclick = () => fetch(`/${button.dataset.command}?token=${token}`, { method: "POST" }).catch(trouble);
  }
}

function theme(dark) {
  document.documentElement.classList.toggle("dark", dark);
  document.documentElement.classList.toggle("light", !dark);
  for (const one of curves) one.draw();
  if (trials) trials.parallel();
  paint();
}

async function start() {
  theme(words.has("dark") || !words.has("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  if (!document.getElementById("end")) trouble("this file ends early: it was cut short, and what is missing cannot be shown");
  data = JSON.parse(document.getElementById("data").textContent);
  $("h1").textContent = data.title;
  $("#made").textContent = data.made;
  data.runs.forEach((run, k) => $("#runs select").append(new Option(run.name, k)));
  $("#runs").hidden = data.runs.length < 2;
  listen();
  compare();
  if (data.study) {
    $("#study").hidden = false;
    trials = new Trials($("#study"), data.study, (row) => openTrial(row).catch(trouble));
  }
  await openRun(Math.max(0, Math.min(data.runs.length - 1, Number(words.get("run") || 1) - 1)));
  if (words.has("trial") && trials) trials.select(data.study.rows.find((row) => String(row[0]) === words.get("trial")));
  if (data.live) followRun(data.live);
  shown.ready = true;
  tell();
  if (words.has("play")) play(true);
}

window.addEventListener("error", (event) => trouble(event.message));
document.addEventListener("securitypolicyviolation", (event) => trouble(`the page asked for ${event.blockedURI}, which it must not`));
document.addEventListener("DOMContentLoaded", () => start().catch(trouble));
