"use strict";
// view: the body, drawn by WebGL2: surfaces that particles carry, particles alone as balls, walls, cables, and the
// shadow on the level ground.

const LIGHT = [-0.37, 0.8, 0.47];
const FIELD = 0.6;                       // [radian] vertical field of view
const FULL = 1.42;                       // radius of a ball in half spacings: no gaps between neighbours

// GLSL of both kinds: what lies on the ground as a shadow, and the light on a face whose normal looks at the eye
const SHARED = `
  uniform mat4 view, project; uniform float ground, shadow; uniform vec3 light;
  vec3 fallen(vec3 place) { return place - shadow * (place.y - ground) * vec3(${LIGHT[0] / LIGHT[1]}, 1.0, ${LIGHT[2] / LIGHT[1]}); }
  vec4 lit(vec3 tint, vec3 normal) {
    if (shadow > 0.5) return vec4(0.05, 0.08, 0.12, 0.24);
    float gloss = pow(max(dot(normal, normalize(light + vec3(0, 0, 1))), 0.0), 24.0);
    return vec4(tint * (0.62 + 0.42 * max(dot(normal, light), 0.0)) + 0.04 * gloss, 1.0);
  }`;

const SHADERS = {
  ball: [`
    in float x0, y0, z0, x1, y1, z1, share; in vec3 rgb;
    uniform vec3 origin, quantum; uniform float mixing, radius, high;
    out vec3 centre, tint; out float size;
    void main() {
      vec3 place = origin + quantum * mix(vec3(x0, y0, z0), vec3(x1, y1, z1), mixing);
      centre = (view * vec4(fallen(place), 1.0)).xyz; tint = rgb; size = radius * share;
      gl_Position = project * vec4(centre, 1.0);
      gl_PointSize = max(1.0, high * project[1][1] * size / gl_Position.w);
    }`, `
    in vec3 centre, tint; in float size;
    uniform float flatness;
    out vec4 colour;
    void main() {
      vec2 at = vec2(2.0, -2.0) * (gl_PointCoord - 0.5);
      float square = dot(at, at);
      if (square > 1.0) discard;
      vec3 normal = vec3(at, sqrt(1.0 - square));
      vec4 clip = project * vec4(centre + size * normal, 1.0);
      gl_FragDepth = shadow > 0.5 ? gl_FragCoord.z - 1e-5 : flatness > 0.5 ? 0.5 + 0.3 * square : 0.5 + 0.5 * clip.z / clip.w;
      colour = flatness > 0.5 ? vec4(tint * (1.0 - 0.1 * square), 1.0) : lit(tint, normal);
    }`],
  face: [`
    in vec3 corner, normal, rgb;
    uniform vec3 offset; uniform float nearer;
    out vec3 place, facing, tint;
    void main() {
      place = fallen(corner + offset); tint = rgb; facing = mat3(view) * normal;
      gl_Position = project * view * vec4(place, 1.0); gl_Position.z -= nearer * gl_Position.w;
    }`, `
    in vec3 place, facing, tint;
    uniform vec3 line, middle; uniform float cell, reach, flatness;
    out vec4 colour;
    void main() {
      vec3 eye = (view * vec4(place, 1.0)).xyz, plain = cross(dFdx(eye), dFdy(eye));
      vec3 normal = normalize(dot(facing, facing) > 0.0 ? facing : faceforward(plain, eye, plain));
      colour = flatness > 0.5 ? vec4(tint, 1.0) : lit(tint, normal);
      if (cell > 0.0) {
        vec2 at = place.xz / cell, wide = fwidth(at);
        vec2 near = abs(fract(at - 0.5) - 0.5) / max(wide, vec2(1e-6));
        float strength = max(1.0 - min(near.x, near.y), 0.0) / (1.0 + 4.0 * max(wide.x, wide.y));
        colour.rgb = mix(colour.rgb, line, 0.55 * strength);
        colour.a = 1.0 - smoothstep(0.45 * reach, reach, distance(place, middle));
      }
    }`],
};

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((x) => x / Math.hypot(...a));

// Is there no GPU? Smooth edges then cost more than half of the frames.
function drawsBySoftware() {
  const gl = document.createElement("canvas").getContext("webgl2"), names = gl && gl.getExtension("WEBGL_debug_renderer_info");
  return Boolean(names) && /swiftshader|llvmpipe|software|basic render/i.test(gl.getParameter(names.UNMASKED_RENDERER_WEBGL));
}

function programOf(gl, [vertex, fragment]) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + SHARED + text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error("shader: " + gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(program);
  return program;
}

// The colour of a value of a channel, and its share beside a particle's own colour; of null the share is 0.
function colourOf(channel, palettes, value, signal) {
  if (value === null) return [[0, 0, 0], 0];
  if (signal) return [palettes.actuation[value < 0 ? 0 : 1], Math.abs(value) < 0.005 ? 0 : 0.9 * Math.abs(value) ** 0.7];
  if (channel.categories) return [palettes.categories[(Math.round(value) - 1) % palettes.categories.length], 1];
  const stops = palettes[channel.palette], place = (stops.length - 1) * (value - channel.lower) / (channel.upper - channel.lower);
  const i = Math.min(Math.floor(place), stops.length - 2);
  return [stops[i].map((x, c) => x + (place - i) * (stops[i + 1][c] - x)), 1];
}

// The colours of particles at a moment, as pictures have them: by group with signals over them, or by a number.
function coloursOf(film, palettes, by, frame, out) {
  const { count, rgb } = film, signal = !film.channels[by], channel = film.channels[by] || film.channels.find((c) => c.signal);
  const levels = channel ? channel.levels[channel.still ? 0 : frame] : new Uint8Array(count);
  const of = Array.from({ length: 256 }, (_, level) => colourOf(channel, palettes, channel ? numberOf(channel, level) : 0, signal));
  const tints = Float64Array.from(of.flatMap(([tint]) => tint.slice(0, 3))), shares = Float64Array.from(of, ([, share]) => share);
  for (let k = 0; k < count; k++) {
    const level = levels[k], share = shares[level];
    for (let c = 0; c < 3; c++) {
      const own = rgb[c * count + k];
      out[3 * k + c] = own + share * (tints[3 * level + c] - own);
    }
  }
}

class View {
  constructor(canvas, palettes) {
    this.canvas = canvas;
    this.palettes = palettes;
    this.gl = canvas.getContext("webgl2", { alpha: false, antialias: !drawsBySoftware(), stencil: true, preserveDrawingBuffer: true });
    if (!this.gl) throw new Error("this browser has no WebGL2: the body cannot be drawn");
    this.programs = {};
    for (const name in SHADERS) this.programs[name] = programOf(this.gl, SHADERS[name]);
    this.particles = false;
    this.follow = false;
  }

  buffer(data, target = this.gl.ARRAY_BUFFER) {
    const buffer = this.gl.createBuffer();
    this.gl.bindBuffer(target, buffer);
    this.gl.bufferData(target, data, this.gl.DYNAMIC_DRAW);
    return buffer;
  }

  fill(buffer, data) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, buffer);
    this.gl.bufferSubData(this.gl.ARRAY_BUFFER, 0, data);
  }

  // a film that decodeFilm has decoded; still: the camera stays
  show(film, still) {
    const { count, surface } = film, all = [...Array(count).keys()], faces = 4 * surface.faces;
    Object.assign(this, { film, loaded: [], rgb: new Uint8Array(3 * count) });
    this.moments = [0, 1].map(() => this.buffer(new Uint16Array(3 * count)));
    this.tints = this.buffer(this.rgb);
    this.shares = this.buffer(film.shares || new Uint8Array(count).fill(255));
    const alone = all.filter((k) => film.alone[k]);
    this.alone = alone.length;
    this.index = this.buffer(Uint32Array.from([...alone, ...all.filter((k) => !film.alone[k])]), this.gl.ELEMENT_ARRAY_BUFFER);
    this.places = new Float32Array(3 * surface.vertices);
    this.normals = new Float32Array(3 * surface.vertices);
    this.faces = { corner: new Float32Array(3 * faces), normal: new Float32Array(3 * faces), rgb: new Uint8Array(3 * faces) };
    this.buffers = Object.fromEntries(Object.entries(this.faces).map(([name, list]) => [name, this.buffer(list)]));
    const halves = [0, 1, 2, 0, 2, 3];
    this.triangles = this.buffer(Uint32Array.from({ length: 6 * surface.faces }, (_, i) => 4 * Math.floor(i / 6) + halves[i % 6]), this.gl.ELEMENT_ARRAY_BUFFER);
    this.walls = film.walls.map(({ kind, corners }) => ({ kind, count: corners.length / 3, buffer: this.buffer(new Float32Array(corners)) }));
    this.cables = film.cables.map((points) => ({ points, corners: new Float32Array(3 * points.length), buffer: this.buffer(new Float32Array(3 * points.length)) }));
    if (!still) this.reset();
  }

  // looks at the whole way
  reset() {
    const { dim, positions, ground } = this.film, [lower, upper] = [[...positions.origin, 0], [...positions.upper, 0]];
    if (ground !== undefined && lower[1] - ground < upper[1] - lower[1]) lower[1] = Math.min(lower[1], ground);
    this.target = [0, 1, 2].map((d) => (lower[d] + upper[d]) / 2);
    this.reach = 2 * Math.hypot(...this.target.map((x, d) => x - lower[d]));
    [this.yaw, this.pitch, this.away] = dim === 2 ? [0, 0, 1] : [0.54, 0.37, 1];
    this.look(0);
    const { right, up, back } = this.axes, tall = 0.88 * Math.tan(FIELD / 2);
    const wide = tall * Math.max(0.2, this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
    this.away = 0;
    for (let k = 0; k < 8; k++) {
      const way = [0, 1, 2].map((d) => (k >> d & 1 ? upper[d] : lower[d]) - this.target[d]);
      this.away = Math.max(this.away, Math.abs(dot(way, right)) / wide + dot(way, back), Math.abs(dot(way, up)) / tall + dot(way, back));
    }
    this.cell = 10 ** Math.floor(Math.log10(this.reach / 4));
  }

  // the camera's matrices, columns after each other
  look(moment) {
    const { yaw, pitch, away, gl } = this, centre = this.film.centres[Math.round(moment)];
    const target = this.target.map((x, d) => (this.follow && d !== 1 ? x + centre[d] - this.anchor[d] : x));
    const back = [Math.cos(pitch) * Math.sin(yaw), Math.sin(pitch), Math.cos(pitch) * Math.cos(yaw)];
    const right = unit(cross([0, 1, 0], back)), up = cross(back, right), eye = target.map((x, d) => x + away * back[d]);
    this.view = [right[0], up[0], back[0], 0, right[1], up[1], back[1], 0, right[2], up[2], back[2], 0,
      -dot(right, eye), -dot(up, eye), -dot(back, eye), 1];
    const near = away / 50, far = away * 4 + 4 * this.reach, f = 1 / Math.tan(FIELD / 2);
    const aspect = gl.drawingBufferWidth / gl.drawingBufferHeight;
    this.project = [f / aspect, 0, 0, 0, 0, f, 0, 0, 0, 0, (far + near) / (near - far), -1, 0, 0, 2 * far * near / (near - far), 0];
    this.axes = { right, up, back };
    this.middle = target;
  }

  // an attribute of the program: numbers of a buffer, or without one a colour or a direction for all
  attribute(name, buffer, size, kind, offset = 0) {
    const { gl } = this, at = gl.getAttribLocation(this.program, name);
    if (at < 0) return;
    if (!kind) return gl.vertexAttrib3fv(at, buffer);
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, kind, kind === gl.UNSIGNED_BYTE, 0, offset);
  }

  // chooses a program, with numbers and vectors of uniforms
  use(name, uniforms) {
    const { gl } = this;
    this.program = this.programs[name];
    for (let i = 0; i < 8; i++) gl.disableVertexAttribArray(i);
    gl.useProgram(this.program);
    for (const matrix of ["view", "project"]) gl.uniformMatrix4fv(gl.getUniformLocation(this.program, matrix), false, this[matrix]);
    const light = ["right", "up", "back"].map((axis) => dot(LIGHT, this.axes[axis]));
    this.set({ light, ground: this.film.ground || 0, flatness: this.film.dim === 2 ? 1 : 0, shadow: 0, cell: 0, offset: [0, 0, 0], ...uniforms });
  }

  set(uniforms) {
    const { gl, program } = this;
    for (const [name, value] of Object.entries(uniforms)) gl[Array.isArray(value) ? "uniform3fv" : "uniform1f"](gl.getUniformLocation(program, name), value);
  }

  // moment: a frame, or between two of them
  draw(moment, by, dark) {
    const { gl, film } = this, scale = Math.min(window.devicePixelRatio || 1, 2);
    const wide = Math.round(this.canvas.clientWidth * scale), high = Math.round(this.canvas.clientHeight * scale);
    if (this.canvas.width !== wide || this.canvas.height !== high) [this.canvas.width, this.canvas.height] = [wide, high];
    gl.viewport(0, 0, wide, high);
    gl.clearColor(...(dark ? [0.086, 0.106, 0.133, 1] : [0.945, 0.957, 0.965, 1]));
    gl.enable(gl.DEPTH_TEST);
    gl.clear(gl.COLOR_BUFFER_BIT | gl.DEPTH_BUFFER_BIT | gl.STENCIL_BUFFER_BIT);
    this.look(moment);
    this.load(moment, by);
    this.bodies(moment % 1, 0);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.drawWalls(Math.round(moment), dark);
    if (film.dim === 3 && film.ground !== undefined) {
      gl.enable(gl.STENCIL_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      gl.depthMask(false);
      this.bodies(moment % 1, 1);
      gl.depthMask(true);
      gl.disable(gl.STENCIL_TEST);
    }
    gl.disable(gl.BLEND);
    this.drawCables(Math.round(moment), dark);
  }

  // gives the GPU what is new at a moment
  load(moment, by) {
    const { film, faces, loaded } = this, frame = Math.floor(moment), frames = [frame, Math.min(frame + 1, film.frames.length - 1)];
    const painted = `${Math.round(moment)} ${by}`, posed = !this.particles && loaded.moment !== moment;
    frames.forEach((f, slot) => { if (loaded[slot] !== f) this.fill(this.moments[slot], film.frames[loaded[slot] = f]); });
    if (loaded.painted !== painted) {
      coloursOf(film, this.palettes, by, Math.round(moment), this.rgb);
      this.fill(this.tints, this.rgb);
      for (let f = 0, i = 0; f < film.surface.faces; f++) {
        const from = 3 * film.surface.of[f];
        for (let corner = 0; corner < 4; corner++) for (let c = 0; c < 3; c++) faces.rgb[i++] = this.rgb[from + c];
      }
      this.fill(this.buffers.rgb, faces.rgb);
      loaded.painted = painted;
    }
    if (!posed) return;
    pose(film, ...frames.map((f) => film.frames[f]), moment - frame, this.places, this.normals);
    const { corners } = film.surface, count = film.surface.faces;
    for (let i = 0; i < corners.length; i++) {
      for (let d = 0, to = 3 * i, from = 3 * corners[(i % 4) * count + (i >> 2)]; d < 3; d++) {
        faces.corner[to + d] = this.places[from + d];
        faces.normal[to + d] = this.normals[from + d];
      }
    }
    this.fill(this.buffers.corner, faces.corner);
    this.fill(this.buffers.normal, faces.normal);
    loaded.moment = moment;
  }

  bodies(mixing, shadow) {
    const { gl, film, buffers } = this, { count, dim, surface } = film, [origin, quantum] = [film.positions.origin, film.positions.quantum].map((v) => [...v, 0].slice(0, 3));
    if (!this.particles && surface.faces) {
      this.use("face", { shadow, nearer: 1e-5 * shadow });
      this.attribute("corner", buffers.corner, 3, gl.FLOAT);
      this.attribute("normal", buffers.normal, 3, gl.FLOAT);
      this.attribute("rgb", buffers.rgb, 3, gl.UNSIGNED_BYTE);
      gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.triangles);
      gl.drawElements(gl.TRIANGLES, 6 * surface.faces, gl.UNSIGNED_INT, 0);
    }
    this.use("ball", { shadow, origin, quantum, mixing, radius: film.radius.largest * FULL, high: gl.drawingBufferHeight });
    ["x", "y", "z"].slice(0, dim).forEach((axis, d) => [0, 1].forEach((slot) => {
      this.attribute(axis + slot, this.moments[slot], 1, gl.UNSIGNED_SHORT, 2 * d * count);
    }));
    this.attribute("rgb", this.tints, 3, gl.UNSIGNED_BYTE);
    this.attribute("share", this.shares, 1, gl.UNSIGNED_BYTE);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.index);
    gl.drawElements(gl.POINTS, this.particles ? count : this.alone, gl.UNSIGNED_INT, 0);
  }

  drawWalls(frame, dark) {
    const { gl, film } = this, line = dark ? [0.4, 0.46, 0.53] : [0.34, 0.41, 0.48], solid = film.dim === 2 ? [0.337, 0.384, 0.439] : dark ? [0.25, 0.27, 0.29] : [0.6, 0.65, 0.7];
    this.use("face", { line, middle: this.middle, reach: 2.2 * Math.max(this.reach, this.away), nearer: 0 });
    this.attribute("normal", [0, 0, 0]);
    for (const [k, { kind, count, buffer }] of this.walls.entries()) {
      if (kind === "none" || kind === "pane") continue;
      const floor = kind === "floor", moved = (film.wall_offsets && film.wall_offsets[frame] || [])[k] || [];
      this.attribute("corner", buffer, 3, gl.FLOAT);
      this.attribute("rgb", !floor ? solid : dark ? [0.157, 0.188, 0.23] : [0.905, 0.925, 0.945]);
      this.set({ cell: floor ? this.cell : 0, offset: [0, 1, 2].map((d) => moved[d] || 0) });
      gl.drawArrays(gl.TRIANGLES, 0, count);
    }
  }

  drawCables(frame, dark) {
    const { gl, film } = this;
    this.use("face", { nearer: 2e-3, flatness: 1 });
    this.attribute("rgb", dark ? [0.95, 0.88, 0.7] : [0.17, 0.15, 0.13]);
    for (const { points, corners, buffer } of this.cables) {
      points.forEach(({ particles, anchor }, k) => {
        const places = anchor ? [anchor] : particles.map((p) => placeOf(film, frame, p));
        for (let d = 0; d < 3; d++) corners[3 * k + d] = places.reduce((sum, place) => sum + (place[d] || 0), 0) / places.length;
      });
      this.fill(buffer, corners);
      this.attribute("corner", buffer, 3, gl.FLOAT);
      gl.drawArrays(gl.LINE_STRIP, 0, points.length);
    }
  }

  turn(dx, dy) {
    this.yaw -= 0.008 * dx;
    this.pitch = Math.max(-0.2, Math.min(1.5, this.pitch + 0.008 * dy));
  }

  pan(dx, dy) {
    const step = 2 * Math.tan(FIELD / 2) * this.away / this.canvas.clientHeight, { right, up } = this.axes;
    this.target = this.target.map((x, d) => x - step * (dx * right[d] - dy * up[d]));
  }

  // goes with the body from now on; it comes to the middle
  track(on, frame) {
    this.anchor = this.film.centres[frame];
    this.target = on ? [this.anchor[0], this.target[1], this.anchor[2]] : this.middle;
    if (on) this.away = Math.min(this.away, 2.5 * this.film.extent);
    this.follow = on;
  }

  zoom(factor) { this.away = Math.max(0.02 * this.reach, Math.min(20 * this.reach, this.away * factor)); }

  // the nearest particle under a place of the canvas; -1: none
  pick(px, py, frame) {
    const { film, view: m, project } = this, wide = this.canvas.clientWidth, high = this.canvas.clientHeight;
    let best = -1, depth = Infinity;
    for (let k = 0; k < film.count; k++) {
      const [x, y, z] = placeOf(film, frame, k), w = -(m[2] * x + m[6] * y + m[10] * z + m[14]);
      if (w <= 0 || w >= depth) continue;
      const sx = (0.5 + 0.5 * project[0] * (m[0] * x + m[4] * y + m[8] * z + m[12]) / w) * wide;
      const sy = (0.5 - 0.5 * project[5] * (m[1] * x + m[5] * y + m[9] * z + m[13]) / w) * high;
      const radius = Math.max(3, 0.5 * high * project[5] * film.radius.largest * FULL / w);
      if ((sx - px) ** 2 + (sy - py) ** 2 < radius ** 2) [best, depth] = [k, w];
    }
    return best;
  }
}
