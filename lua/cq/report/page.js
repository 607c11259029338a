"use strict";
// page: what is shown, and how it is moved. The address may say what: gait.html#run=2&frame=40&pick=17&colour=speed

const $ = (selector) => document.querySelector(selector);
const words = new URLSearchParams(location.hash.slice(1));
const shown = { run: 0, moment: 0, playing: false, colour: -1, picked: -1, drawn: 0, errors: [], ready: false };
let data, view, film, curves = [], trials;       // film: the one that is shown, decoded; null where there is none

// What tests and other programs read: the attribute data-state of <html>.
function tell() {
  const { ready, errors, drawn, status, iteration, opened } = shown, run = data && data.runs[shown.run], frame = Math.round(shown.moment);
  const state = { ready, errors, run: run ? run.name : null, frame, drawn, status, iteration, opened, kept: run && run.robustness ? run.robustness.bars.length : 0, frames: 0, particles: 0,
    requests: performance.getEntriesByType("resource").length };
  if (film) Object.assign(state, { frames: film.times.length, particles: film.count, faces: film.surface.faces });
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

function paint() {
  if (!film) return;
  view.draw(shown.moment, shown.colour, isDark());
  shown.drawn++;
}

function timeOf() {
  const { times } = film, frame = Math.floor(shown.moment), next = Math.min(frame + 1, times.length - 1);
  return times[frame] + (shown.moment - frame) * (times[next] - times[frame]);
}

// the moment of a time
function momentAt(time) {
  const { times } = film, after = times.findIndex((t) => t > time);
  if (after <= 0) return after < 0 ? times.length - 1 : 0;
  return after - (times[after] - time) / (times[after] - times[after - 1]);
}

function setMoment(moment) {
  if (!film) return;
  shown.moment = Math.max(0, Math.min(film.times.length - 1, moment));
  $("#scrub").value = shown.moment;
  $("#time").textContent = `t = ${timeOf().toFixed(3)}`;
  for (const one of curves) if (one.given.follows) one.point(timeOf());
  tellPicked();
  paint();
  if (!shown.playing) tell();
}

function play(on = !shown.playing) {
  shown.playing = on && Boolean(film);
  $("#play").textContent = shown.playing ? "❚❚" : "▶";
  if (!shown.playing) return tell();
  const end = film.times.length - 1;
  if (shown.moment >= end) shown.moment = 0;
  cancelAnimationFrame(shown.next);
  let last = performance.now();
  shown.next = requestAnimationFrame(function step(now) {
    if (!shown.playing) return;
    const time = timeOf() + Number($("#speed").value) * Math.max(0, now - last) / 1000;
    last = now;
    setMoment(time > film.times[end] ? 0 : momentAt(time));
    shown.next = requestAnimationFrame(step);
  });
}

function facts(list, entries) {
  list.replaceChildren();
  for (const [name, value] of entries) {
    add(list, "dt", name);
    add(list, "dd", brief(value));
  }
}

function tellPicked() {
  $("#picked").hidden = shown.picked < 0;
  if (shown.picked < 0) return;
  const frame = Math.round(shown.moment), place = placeOf(film, frame, shown.picked).slice(0, film.dim);
  facts($("#picked"), [["particle", film.order[shown.picked] + 1], ["place", place.map(brief).join(", ")],
    ...film.channels.map((channel) => [channel.label, valueOf(channel, frame, shown.picked) ?? "none"])]);
}

function legend() {
  const box = $("#legend"), channel = film.channels[shown.colour], { categories, actuation } = data.palettes;
  const rgb = (c) => `rgb(${c.slice(0, 3).join(" ")})`;
  box.replaceChildren();
  const mark = (colour, text) => {
    const entry = add(box, "span");
    add(entry, "i").style.background = colour;
    entry.append(text);
  };
  if (!channel) {
    for (const group of film.groups.length > 1 && film.groups.length <= 8 ? film.groups : []) mark(group.colour, group.name);
    const signal = film.channels.find((c) => c.signal);
    if (signal) ["signal −", `signal +${signal.red ? `: ${signal.red}` : ""}`].forEach((name, k) => mark(rgb(actuation[k]), name));
  } else if (channel.categories) channel.categories.forEach((name, k) => mark(rgb(categories[k % categories.length]), name));
  else {
    box.append(channel.label + (channel.red ? `; red ${channel.red}` : "") + (channel.unit ? ` [${channel.unit}]  ` : "  "), brief(channel.lower));
    add(box, "b").style.background = `linear-gradient(90deg, ${data.palettes[channel.palette].map(rgb)})`;
    box.append(brief(channel.upper));
  }
}

async function openFilm(next) {
  if (!next.frames) await decodeFilm(next, (share) => ($("#note").textContent = `decoding ${Math.round(100 * share)} %`));
  view = view || new View($("#picture canvas"), data.palettes);
  view.show(next, Boolean(data.live && view.film));
  film = next;
  shown.picked = words.has("pick") ? film.order.indexOf(Number(words.get("pick")) - 1) : -1;
  $("#scrub").max = film.times.length - 1;
  $("#colour").replaceChildren(new Option("groups", -1), ...film.channels.map((channel, k) => new Option(channel.label, k)));
  shown.colour = film.channels.findIndex((channel) => channel.label === words.get("colour"));
  $("#colour").value = shown.colour;
  $("#note").textContent = film.count === film.total ? `${film.count} particles` : `${film.count} of ${film.total} particles`;
  legend();
  setMoment(Number(words.get("frame") || shown.moment));
}

function drawCurves(own) {
  $("#curves").replaceChildren();
  curves = [...data.curves, ...own].filter((given) => !given.x || given.x.length > 0)
    .map((given) => new Curves($("#curves"), given, data.palettes.lines, given.follows && ((time) => { play(false); setMoment(momentAt(time)); })));
}

// what is kept where the simulation is a little different: a bar for each change, from its least to its most kept
function keeps(given) {
  $("#robust").hidden = !given;
  if (!given) return;
  const box = $("#robust > div"), measured = given.bars.filter((bar) => bar.low !== undefined);
  const low = Math.min(90, ...measured.map((bar) => bar.low)), high = Math.max(105, ...measured.map((bar) => bar.high));
  const at = (percent) => `${100 * (percent - low) / (high - low)}%`;
  $("#robust p").textContent = "percent of the gain over " + (given.baseline_of === "start" ? "the start" : "the body without signals");
  $("#robust pre").textContent = given.text;
  box.replaceChildren();
  for (const { name, low: least, high: most, median, failed } of given.bars) {
    add(box, "span", name);
    const line = add(box, "div", "");
    let words = "failed";
    if (least !== undefined) {
      Object.assign(add(line, "i", "").style, { left: at(Math.min(least, 100)), right: `calc(100% - ${at(Math.max(most, 100))})` });
      const ends = [...new Set([least, most].map(Math.round))].join(" to ");
      words = ends + (median === undefined ? "" : `, median ${Math.round(median)}`) + (failed ? ", and failed" : "");
    }
    add(line, "b", "").style.left = at(100);
    if (median !== undefined) add(line, "u", "").style.left = at(median);
    add(box, "span", words);
  }
}

async function openRun(k) {
  const run = data.runs[k] || { curves: [] };
  play(false);
  film = null;
  shown.run = k;
  $("#runs select").value = k;
  document.body.classList.toggle("bare", !run.film);
  $("#script").hidden = !run.script;
  $("#script pre").textContent = run.script || "";
  $("#note").textContent = "";
  $("#made").textContent = run.note || data.made;
  keeps(run.robustness);
  drawCurves(run.film ? [...run.curves, ...run.film.curves] : run.curves);
  if (run.film) await openFilm(run.film);
}

async function openTrial(row) {
  const { columns, runs, histories } = data.study, number = String(row[0]);
  $("#trial").hidden = false;
  $("#trial h2").textContent = `Trial ${number}`;
  facts($("#trial dl"), columns.map((name, k) => [name, row[k]]).filter(([, value]) => value !== "" && value !== null));
  if (runs[number] !== undefined) await openRun(runs[number]);
  else drawCurves(histories[number] || []);
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
    if (!from || !film) return;
    const [dx, dy] = [event.offsetX - from[0], event.offsetY - from[1]];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    [from, moved] = [[event.offsetX, event.offsetY], true];
    view[event.shiftKey || event.buttons > 1 || film.dim === 2 ? "pan" : "turn"](dx, dy);
    paint();
  };
  canvas.onpointerup = (event) => {
    if (from && !moved && film) {
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
  const change = { colour: ({ value }) => { shown.colour = Number(value); legend(); }, follow: ({ checked }) => view.track(checked, Math.round(shown.moment)),
    particles: ({ checked }) => { view.particles = checked; } };
  for (const name in change) $("#" + name).onchange = ({ target }) => { change[name](target); paint(); };
  const press = {
    play: () => play(), reset: () => { view.reset(); paint(); }, theme: () => theme(!isDark()),
    shot: () => { paint(); canvas.toBlob((blob) => Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: document.title + ".png" }).click()); },
  };
  for (const name in press) $("#" + name).onclick = press[name];
  $("#scrub").oninput = ({ target }) => { play(false); setMoment(Number(target.value)); };
  $("#runs select").onchange = ({ target }) => openRun(Number(target.value)).catch(trouble);
  const keys = { " ": press.play, ArrowLeft: () => setMoment(Math.ceil(shown.moment) - 1), ArrowRight: () => setMoment(Math.floor(shown.moment) + 1),
    Home: () => setMoment(0), End: () => setMoment(Infinity), r: press.reset, d: press.theme, s: press.shot, f: () => $("#follow").click(), p: () => $("#particles").click() };
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
  const on = (name, act) => source.addEventListener(name, (event) => act(JSON.parse(event.data)));
  let newest = null, reading = false;
  box.hidden = false;
  on("state", ({ status, iteration, iterations, loss }) => {
    told.textContent = [status, iterations ? `${iteration} of ${iterations}` : iteration, loss === undefined ? "" : "loss " + brief(loss)].filter(Boolean).join(", ");
    box.querySelector("[data-command=pause]").textContent = status === "paused" ? "go on" : "pause";
    Object.assign(shown, { status, iteration });
    if (!/running|paused|stopping/.test(status)) source.close();
    tell();
  });
  on("history", (curve) => {
    data.curves = [curve];
    drawCurves(film ? film.curves : []);
  });
  // One film is read after the other, for it is read from texts of the page, and the one before is shown until it is read;
  // of those that come meanwhile the newest is next.
  on("film", async (event) => {
    newest = event;
    if (reading) return;
    for (reading = true; newest;) {
      const { film: next, texts, iteration } = newest;
      newest = null;
      for (const old of document.querySelectorAll("[id^=blob-]")) old.remove();
      texts.forEach((textContent, k) => document.body.append(Object.assign(document.createElement("script"), { type: "text/plain", id: "blob-" + (k + 1), textContent })));
      try {
        await decodeFilm(next, () => {});
        const { playing } = shown;
        data.runs = [{ name: "iteration " + iteration, film: next, curves: [] }];
        await openRun(0);
        play(playing);
      } catch (problem) {
        trouble(problem);
      }
    }
    reading = false;
  });
  source.onerror = () => (told.textContent = "the program has ended, or cannot be reached");
  for (const button of box.querySelectorAll("button")) {
    button.onclick = () => fetch(`/${button.dataset.command}?token=${token}`, { method: "POST" }).catch(trouble);
  }
}

function theme(dark) {
  document.documentElement.className = dark ? "dark" : "light";
  for (const one of curves) one.draw();
  if (trials) trials.parallel();
  paint();
}

async function start() {
  theme(words.has("dark") || !words.has("light") && matchMedia("(prefers-color-scheme: dark)").matches);
  if (!document.getElementById("end")) trouble("this file ends early: it was cut short, and what is missing cannot be shown");
  data = JSON.parse(document.getElementById("data").textContent);
  $("h1").textContent = data.title;
  data.runs.forEach((run, k) => $("#runs select").append(new Option(run.name, k)));
  $("#runs").hidden = data.runs.length < 2;
  listen();
  $("#facts").hidden = !data.facts;
  if (data.facts) rowsOf($("#facts table"), data.facts.heads, data.facts.rows);
  if (data.study) {
    $("#study").hidden = false;
    trials = new Trials($("#study"), data.study, (row) => openTrial(row).catch(trouble));
  }
  await openRun(Math.max(0, Math.min(data.runs.length - 1, Number(words.get("run") || 1) - 1)));
  if (words.has("trial") && trials) trials.select(data.study.rows.find((row) => String(row[0]) === words.get("trial")));
  if (data.live) followRun(data.live);
  Object.assign(shown, { ready: true, opened: Math.round(performance.now()) });
  tell();
  if (words.has("play")) play(true);
}

window.addEventListener("error", (event) => trouble(event.message));
document.addEventListener("securitypolicyviolation", (event) => trouble(`the page asked for ${event.blockedURI}, which it must not`));
document.addEventListener("DOMContentLoaded", () => start().catch(trouble));
