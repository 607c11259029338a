"use strict";
// decode: numbers of particles over time from the texts of the page; encode.lua is the other way.

// The bytes of one of the page's texts: base64 of a deflated stream. Every error says which text, and what is wrong.
async function bytesOf(number, count, what) {
  const element = document.getElementById("blob-" + number);
  if (!element) throw new Error(`${what}: text ${number} is missing: the file was cut short`);
  let packed;
  try {
    packed = atob(element.textContent.trim());
  } catch {
    throw new Error(`${what}: text ${number} is no base64: the file was cut short or changed`);
  }
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  let out;
  try {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    out = new Uint8Array(await new Response(stream).arrayBuffer());
  } catch (problem) {
    throw new Error(`${what}: text ${number} cannot be decompressed (${problem.message}): the file was cut short or changed`);
  }
  if (count !== undefined && out.length !== count) {
    throw new Error(`${what}: text ${number} gives ${out.length} bytes, ${count} are expected: the file was changed`);
  }
  element.remove();
  return out;
}

const unzigzag = (z) => (z & 1 ? -(z + 1) / 2 : z / 2);

async function integersOf(number, count, what) {
  const bytes = await bytesOf(number, 4 * count, what), out = new Int32Array(count);
  let last = 0;
  for (let k = 0; k < count; k++) {
    let z = 0;
    for (let j = 3; j >= 0; j--) z = z * 256 + bytes[j * count + k];
    out[k] = last += unzigzag(z);
  }
  return out;
}

// What predicts each particle, from its neighbours along -x, -y and -z; -1: none. encode.lua says why.
function predictionOf(before, count) {
  const dim = before.length, by = { a: new Int32Array(count), b: new Int32Array(count).fill(-1), c: new Int32Array(count).fill(-1), d: new Int32Array(count).fill(-1) };
  const along = (q, axis) => (q >= 0 ? before[axis][q] : -1), pairs = dim === 3 ? [[0, 1], [0, 2], [1, 2]] : [[0, 1]];
  for (let p = 0; p < count; p++) {
    const near = before.map((list) => list[p]), all = dim === 3 && near[0] >= 0 && near[1] >= 0 ? along(along(near[2], 1), 0) : -1;
    if (all >= 0) {
      [by.a[p], by.b[p], by.c[p], by.d[p]] = [...near, all];
      continue;
    }
    const pair = pairs.find(([one, other]) => near[one] >= 0 && along(near[other], one) >= 0);
    if (pair) [by.a[p], by.b[p], by.d[p]] = [near[pair[0]], near[pair[1]], along(near[pair[1]], pair[0])];
    else by.a[p] = near.find((q) => q >= 0) ?? p - 1;
  }
  return by;
}

function predict(v, p, { a, b, c, d }) {
  if (c[p] >= 0) return (v[a[p]] + v[b[p]] + v[c[p]] - v[d[p]] + 1) >> 1;
  if (b[p] >= 0) return v[a[p]] + v[b[p]] - v[d[p]];
  return a[p] >= 0 ? v[a[p]] : 0;
}

// A piece of a film: frames of `series` numbers of each particle, each frame an array of bytes or of 16-bit numbers.
async function pieceOf(number, { frames, series, count, wide, by, what }) {
  const all = frames * series * count, small = Math.ceil(all / 2), raw = await bytesOf(number, undefined, what);
  const large = (raw.length - small) / 2;
  if (!(large >= 0) || large % 1 !== 0) throw new Error(`${what}: text ${number} has ${raw.length} bytes, at least ${small} are expected: the file was changed`);
  const Kind = wide ? Uint16Array : Uint8Array, shift = wide ? 16 : 24;
  const v = new Int32Array(count), out = [];
  for (let f = 0, at = 0, next = small; f < frames; f++) {
    const now = new Kind(series * count), last = out[f - 1];
    for (let s = 0; s < series; s++) {
      for (let p = 0, k = s * count; p < count; p++, k++, at++) {
        let z = at & 1 ? raw[at >> 1] >> 4 : raw[at >> 1] & 15;
        if (z === 15) z = raw[next] | (raw[large + next++] << 8);
        const change = ((predict(v, p, by) + ((z >> 1) ^ -(z & 1))) << shift) >> shift;
        v[p] = change;
        now[k] = f === 0 ? change : last[k] + change;
      }
    }
    out.push(now);
  }
  return out;
}

// Decodes a film in place: film.frames, film.levels of each channel, and what stays. progress(share) is called between.
async function decodeFilm(film, progress) {
  const { count, dim, key, times } = film;
  const before = [];
  for (const number of film.before) before.push(await integersOf(number, count, "neighbours"));
  const by = predictionOf(before, count);
  film.order = await integersOf(film.numbers, count, "numbers of particles");
  await surfaceOf(film);
  film.rgb = await bytesOf(film.colours, 3 * count, "colours");
  if (film.radius.shares !== undefined) film.shares = await bytesOf(film.radius.shares, count, "radii");
  const all = film.positions.pieces.length + film.channels.reduce((sum, c) => sum + c.pieces.length, 0);
  let done = 0;
  async function pieces(list, frames, options) {
    const out = [];
    for (const [k, number] of list.entries()) {
      out.push(...await pieceOf(number, { ...options, frames: Math.min(key, frames - k * key), count, by }));
      progress(++done / all);
      await new Promise((resume) => setTimeout(resume));
    }
    return out;
  }
  film.frames = await pieces(film.positions.pieces, times.length, { series: dim, wide: true, what: "positions" });
  for (const channel of film.channels) {
    const frames = channel.still ? 1 : times.length;
    channel.levels = await pieces(channel.pieces, frames, { series: 1, wide: false, what: channel.label });
  }
  if (times.length > 1) film.channels.push(speedOf(film));
}

// The surface of surface.lua: vertices by particles and weights, faces by vertices and the particle of their colour.
async function surfaceOf(film) {
  const { count, dim, surface } = film, { vertices, faces } = surface;
  film.alone = await bytesOf(surface.alone, count, "surface");
  for (const [name, size] of Object.entries({ bonds: (dim + 1) * vertices, weights: (dim + 1) * vertices, corners: 4 * faces, of: faces })) {
    surface[name] = await integersOf(surface[name], size, "surface");
  }
}

// Fills in the vertices of the surface, and their normals, for a moment between two frames.
function pose({ count, dim, positions, surface }, from, to, mixing, places, normals) {
  const { vertices, faces, bonds, weights, corners, scale } = surface;
  for (let v = 0; v < vertices; v++) {
    for (let d = 0; d < dim; d++) {
      let sum = 0;
      for (let k = v; k < bonds.length; k += vertices) {
        const p = d * count + bonds[k];
        sum += weights[k] * (from[p] + mixing * (to[p] - from[p]));
      }
      places[3 * v + d] = positions.origin[d] + positions.quantum[d] * sum / scale;
    }
  }
  normals.fill(0);
  for (let f = 0; f < faces && dim === 3; f++) {
    const a = 3 * corners[f], b = 3 * corners[faces + f], c = 3 * corners[2 * faces + f], d = 3 * corners[3 * faces + f];
    for (let k = 0, i = 1, j = 2; k < 3; k++, i = j, j = (j + 1) % 3) {
      const n = (places[c + i] - places[a + i]) * (places[d + j] - places[b + j]) - (places[c + j] - places[a + j]) * (places[d + i] - places[b + i]);
      normals[a + k] += n;
      normals[b + k] += n;
      normals[c + k] += n;
      normals[d + k] += n;
    }
  }
}

// The speed of particles, from the frames before and after.
function speedOf({ frames, times, count, dim, positions }) {
  let upper = 0;
  const speeds = frames.map((_, frame) => {
    const a = Math.max(0, frame - 1), b = Math.min(frames.length - 1, frame + 1), out = new Float32Array(count);
    for (let d = 0; d < dim; d++) {
      const [from, to] = [frames[a], frames[b]], scale = positions.quantum[d] / (times[b] - times[a]);
      for (let p = 0, k = d * count; p < count; p++, k++) out[p] += (scale * (to[k] - from[k])) ** 2;
    }
    for (let p = 0; p < count; p++) upper = Math.max(upper, out[p] = Math.sqrt(out[p]));
    return out;
  });
  upper = upper || 1;
  const levels = speeds.map((speed) => {
    const out = new Uint8Array(count);
    for (let p = 0; p < count; p++) out[p] = 255 * speed[p] / upper + 0.5;
    return out;
  });
  return { label: "speed", lower: 0, upper, palette: "rising", levels };
}

// Where a particle is at a moment, {x, y, z}; k is its place in the arrays.
function placeOf(film, frame, k) {
  const { origin, quantum } = film.positions;
  return [0, 1, 2].map((d) => (d < film.dim ? origin[d] + quantum[d] * film.frames[frame][d * film.count + k] : 0));
}

// The number that a level of a channel stands for; null: none.
function numberOf({ lower, upper, gaps }, level) {
  return gaps && level === 255 ? null : lower + (upper - lower) * level / (gaps ? 254 : 255);
}

function valueOf(channel, frame, k) {
  return numberOf(channel, channel.levels[channel.still ? 0 : frame][k]);
}
