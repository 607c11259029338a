"use strict";
// view: the body, drawn by WebGL2: particles as balls with depth, their shadow on the level ground, walls, cables.

const LIGHT = [-0.37, 0.8, 0.47];
const FIELD = 0.6;                       // [radian] vertical field of view
const FULL = 1.42;                       // radius of a ball in half spacings: no gaps between neighbours

const SHADERS = {
  ball: [`
    in float x0, y0, z0, x1, y1, z1, share; in vec3 rgb;
    uniform vec3 origin, quantum; uniform float mixing, radius, high; uniform mat4 view, project; uniform vec4 ground;
    out vec3 centre, tint; out float size;
    void main() {
      vec3 place = origin + quantum * mix(vec3(x0, y0, z0), vec3(x1, y1, z1), mixing);
      if (ground.w > 0.0) place -= vec3(${LIGHT[0] / LIGHT[1]}, 1.0, ${LIGHT[2] / LIGHT[1]}) * (place.y - ground.y);
      centre = (view * vec4(place, 1.0)).xyz; tint = rgb; size = radius * share;
      gl_Position = project * vec4(centre, 1.0);
      gl_PointSize = max(1.0, high * project[1][1] * size / gl_Position.w);
    }`, `
    in vec3 centre, tint; in float size;
    uniform mat4 project; uniform vec3 light; uniform vec4 ground; uniform float flatness;
    out vec4 colour;
    void main() {
      vec2 at = vec2(2.0, -2.0) * (gl_PointCoord - 0.5);
      float square = dot(at, at);
      if (square > 1.0) discard;
      if (ground.w > 0.0) { colour = vec4(0.05, 0.08, 0.12, 0.24); gl_FragDepth = gl_FragCoord.z - 1e-5; return; }
      if (flatness > 0.5) { colour = vec4(tint * (1.0 - 0.1 * square), 1.0); gl_FragDepth = 0.5 + 0.3 * square; return; }
      vec3 normal = vec3(at, sqrt(1.0 - square));
      vec4 clip = project * vec4(centre + size * normal, 1.0);
      gl_FragDepth = 0.5 + 0.5 * clip.z / clip.w;
      float lit = 0.62 + 0.42 * max(dot(normal, light), 0.0) - 0.12 * square * square;
      colour = vec4(tint * lit + 0.04 * pow(max(dot(normal, normalize(light + vec3(0, 0, 1))), 0.0), 24.0), 1.0);
    }`],
  wall: [`
    in vec3 corner;
    uniform mat4 view, project; uniform vec3 offset;
    out vec3 place;
    void main() { place = corner + offset; gl_Position = project * view * vec4(place, 1.0); }`, `
    in vec3 place;
    uniform vec4 tint, line; uniform float cell, flatness; uniform vec3 middle, light; uniform float reach;
    out vec4 colour;
    void main() {
      colour = tint;
      vec3 face = normalize(cross(dFdx(place), dFdy(place)));
      if (flatness < 0.5) colour.rgb *= 0.8 + 0.2 * abs(face.y) + 0.08 * face.x;
      if (cell > 0.0) {
        vec2 at = place.xz / cell, wide = fwidth(at);
        vec2 near = abs(fract(at - 0.5) - 0.5) / max(wide, vec2(1e-6));
        float strength = max(1.0 - min(near.x, near.y), 0.0) / (1.0 + 4.0 * max(wide.x, wide.y));
        colour.rgb = mix(colour.rgb, line.rgb, 0.55 * strength);
        colour.a *= 1.0 - smoothstep(0.45 * reach, reach, distance(place, middle));
      }
    }`],
  wire: [`
    in vec3 corner; uniform mat4 view, project;
    void main() { gl_Position = project * view * vec4(corner, 1.0); gl_Position.z -= 2e-3 * gl_Position.w; }`, `
    uniform vec4 tint; out vec4 colour; void main() { colour = tint; }`],
};

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
const unit = (a) => a.map((x) => x / Math.hypot(...a));

function programOf(gl, [vertex, fragment]) {
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, vertex], [gl.FRAGMENT_SHADER, fragment]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, "#version 300 es\nprecision highp float;\n" + text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
    if (!gl.getShaderParameter(shader, gl.COMPILE_STATUS)) throw new Error("shader: " + gl.getShaderInfoLog(shader));
  }
  gl.linkProgram(program);
  const found = { program, at: {}, uniform: {} };
  for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_ATTRIBUTES); i++) {
    const { name } = gl.getActiveAttrib(program, i);
    found.at[name] = gl.getAttribLocation(program, name);
  }
  for (let i = 0; i < gl.getProgramParameter(program, gl.ACTIVE_UNIFORMS); i++) {
    const { name } = gl.getActiveUniform(program, i);
    found.uniform[name] = gl.getUniformLocation(program, name);
  }
  return found;
}

// The colours of particles at a moment, as pictures have them: by group with signals over them, or by a number.
function coloursOf(film, palettes, by, frame, out) {
  const { count, rgb } = film, channel = film.channels[by];
  const signal = film.channels.find((c) => c.signal);
  for (let k = 0; k < count; k++) {
    if (channel) {
      const stops = palettes[channel.palette], value = valueOf(channel, frame, k);
      const place = (stops.length - 1) * (value - channel.lower) / (channel.upper - channel.lower);
      const i = Math.min(Math.floor(place), stops.length - 2), w = place - i;
      const named = channel.categories && palettes.categories[(Math.round(value) - 1) % palettes.categories.length];
      for (let c = 0; c < 3; c++) out[3 * k + c] = named ? named[c] : stops[i][c] + w * (stops[i + 1][c] - stops[i][c]);
      continue;
    }
    const u = signal ? valueOf(signal, frame, k) : 0;
    const to = palettes.actuation[u < 0 ? 0 : 1], w = Math.abs(u) < 0.005 ? 0 : 0.9 * Math.abs(u) ** 0.7;
    for (let c = 0; c < 3; c++) out[3 * k + c] = rgb[c * count + k] + w * (to[c] - rgb[c * count + k]);
  }
}

class View {
  constructor(canvas, palettes) {
    this.canvas = canvas;
    this.palettes = palettes;
    this.gl = canvas.getContext("webgl2", { alpha: false, antialias: true, stencil: true, preserveDrawingBuffer: true });
    if (!this.gl) throw new Error("this browser has no WebGL2: the body cannot be drawn");
    this.programs = {};
    for (const name in SHADERS) this.programs[name] = programOf(this.gl, SHADERS[name]);
    this.inner = false;
    this.follow = false;
  }

  buffer(data, target = this.gl.ARRAY_BUFFER) {
    const buffer = this.gl.createBuffer();
    this.gl.bindBuffer(target, buffer);
    this.gl.bufferData(target, data, this.gl.DYNAMIC_DRAW);
    return buffer;
  }

  // a film that decodeFilm has decoded; still: the camera stays
  show(film, still) {
    const { count } = film;
    this.film = film;
    this.moments = [this.buffer(new Uint16Array(3 * count)), this.buffer(new Uint16Array(3 * count))];
    this.loaded = [-1, -1];
    this.rgb = new Uint8Array(3 * count);
    this.tints = this.buffer(this.rgb);
    this.shares = this.buffer(film.shares || new Uint8Array(count).fill(255));
    const outer = [], all = [];
    for (let k = 0; k < count; k++) (film.inside[k] ? outer : all).push(k);
    this.outerCount = outer.length;
    this.index = this.buffer(new Uint32Array(outer.concat(all)), this.gl.ELEMENT_ARRAY_BUFFER);
    this.walls = film.walls.map((wall) => ({ kind: wall.kind, count: wall.corners.length / 3,
      buffer: wall.corners.length ? this.buffer(new Float32Array(wall.corners)) : null }));
    this.cables = (film.cables.length ? film.cables : []).map((points) => ({ points, buffer: this.buffer(new Float32Array(3 * points.length)) }));
    this.centres = film.times.map((_, frame) => this.centreOf(frame));
    if (!still) this.reset();
  }

  centreOf(frame) {
    const { count, dim, frames, positions } = this.film, out = [0, 0, 0];
    for (let d = 0; d < dim; d++) {
      let sum = 0;
      for (let k = d * count; k < (d + 1) * count; k++) sum += frames[frame][k];
      out[d] = positions.origin[d] + positions.quantum[d] * sum / count;
    }
    return out;
  }

  // looks at the whole way, or at the body where it is followed
  reset() {
    const { dim, positions, ground } = this.film, lower = [0, 0, 0], upper = [0, 0, 0];
    for (let d = 0; d < dim; d++) {
      [lower[d], upper[d]] = [positions.origin[d], positions.upper[d]];
    }
    if (ground !== undefined && lower[1] - ground < upper[1] - lower[1]) lower[1] = Math.min(lower[1], ground);
    this.reach = Math.hypot(...upper.map((x, d) => x - lower[d]));
    this.target = lower.map((x, d) => (x + upper[d]) / 2);
    [this.yaw, this.pitch, this.away] = dim === 2 ? [0, 0, 1] : [0.54, 0.37, 1];
    this.look(0);
    const { right, up, back } = this.axes, tall = 0.88 * Math.tan(FIELD / 2);
    const wide = tall * Math.max(0.2, this.canvas.clientWidth / Math.max(1, this.canvas.clientHeight));
    let away = 0;
    for (let k = 0; k < 8; k++) {
      const way = [0, 1, 2].map((d) => (k >> d & 1 ? upper[d] : lower[d]) - this.target[d]);
      away = Math.max(away, Math.abs(dot(way, right)) / wide + dot(way, back), Math.abs(dot(way, up)) / tall + dot(way, back));
    }
    this.away = away;
    this.cell = 10 ** Math.floor(Math.log10(this.reach / 4));
  }

  // the camera's matrices, columns after each other
  look(moment) {
    let target = this.target;
    if (this.follow) target = target.map((x, d) => (d === 1 ? x : x + this.centres[Math.round(moment)][d] - this.anchor[d]));
    const { yaw, pitch, away, gl } = this;
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

  load(slot, frame) {
    if (this.loaded[slot] === frame) return;
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.moments[slot]);
    this.gl.bufferSubData(this.gl.ARRAY_BUFFER, 0, this.film.frames[frame]);
    this.loaded[slot] = frame;
  }

  attribute(at, buffer, size, kind, normal, offset = 0) {
    if (at === undefined) return;
    const { gl } = this;
    gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, kind, normal, 0, offset);
  }

  use(name) {
    const { gl } = this, one = this.programs[name];
    for (let i = 0; i < 8; i++) gl.disableVertexAttribArray(i);
    gl.useProgram(one.program);
    gl.uniformMatrix4fv(one.uniform.view, false, this.view);
    gl.uniformMatrix4fv(one.uniform.project, false, this.project);
    if (one.uniform.light) gl.uniform3fv(one.uniform.light, ["right", "up", "back"].map((a) => dot(LIGHT, this.axes[a])));
    return one;
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
    if (!film) return;
    this.look(moment);
    const frame = Math.floor(moment), next = Math.min(frame + 1, film.frames.length - 1);
    this.load(0, frame);
    this.load(1, next);
    coloursOf(film, this.palettes, by, Math.round(moment), this.rgb);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.tints);
    gl.bufferSubData(gl.ARRAY_BUFFER, 0, this.rgb);
    this.balls(moment - frame, false);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA);
    this.drawWalls(Math.round(moment), dark);
    if (film.dim === 3 && film.ground !== undefined) {
      gl.enable(gl.STENCIL_TEST);
      gl.stencilFunc(gl.EQUAL, 0, 255);
      gl.stencilOp(gl.KEEP, gl.KEEP, gl.INCR);
      gl.depthMask(false);
      this.balls(moment - frame, true);
      gl.depthMask(true);
      gl.disable(gl.STENCIL_TEST);
    }
    gl.disable(gl.BLEND);
    this.drawCables(Math.round(moment), dark);
  }

  balls(mixing, shadow) {
    const { gl, film } = this, { count, dim } = film, one = this.use("ball");
    ["x", "y", "z"].slice(0, dim).forEach((axis, d) => {
      this.attribute(one.at[axis + "0"], this.moments[0], 1, gl.UNSIGNED_SHORT, false, 2 * d * count);
      this.attribute(one.at[axis + "1"], this.moments[1], 1, gl.UNSIGNED_SHORT, false, 2 * d * count);
    });
    this.attribute(one.at.rgb, this.tints, 3, gl.UNSIGNED_BYTE, true);
    this.attribute(one.at.share, this.shares, 1, gl.UNSIGNED_BYTE, true);
    const { origin, quantum } = film.positions;
    gl.uniform3f(one.uniform.origin, origin[0], origin[1], dim === 3 ? origin[2] : 0);
    gl.uniform3f(one.uniform.quantum, quantum[0], quantum[1], dim === 3 ? quantum[2] : 0);
    gl.uniform1f(one.uniform.mixing, mixing);
    gl.uniform1f(one.uniform.flatness, dim === 2 ? 1 : 0);
    gl.uniform1f(one.uniform.radius, film.radius.largest * FULL);
    gl.uniform1f(one.uniform.high, gl.drawingBufferHeight);
    gl.uniform4f(one.uniform.ground, 0, film.ground || 0, 0, shadow ? 1 : 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, this.index);
    gl.drawElements(gl.POINTS, this.inner ? count : this.outerCount, gl.UNSIGNED_INT, 0);
  }

  drawWalls(frame, dark) {
    const { gl, film } = this, one = this.use("wall"), shade = dark ? 0.42 : 1;
    for (const [k, wall] of this.walls.entries()) {
      if (!wall.count || wall.kind === "none" || wall.kind === "pane") continue;
      const floor = wall.kind === "floor", offset = film.wall_offsets && film.wall_offsets[frame] && film.wall_offsets[frame][k];
      this.attribute(one.at.corner, wall.buffer, 3, gl.FLOAT, false);
      const tint = floor ? (dark ? [0.15, 0.18, 0.22] : [0.867, 0.886, 0.906]) : film.dim === 2 ? [0.337, 0.384, 0.439] : [0.553, 0.6, 0.651].map((x) => x * shade);
      gl.uniform4f(one.uniform.tint, ...tint, 1);
      gl.uniform4f(one.uniform.line, ...(dark ? [0.4, 0.46, 0.53] : [0.34, 0.41, 0.48]), 1);
      gl.uniform1f(one.uniform.cell, floor ? this.cell : 0);
      gl.uniform1f(one.uniform.flatness, film.dim === 2 ? 1 : 0);
      gl.uniform3fv(one.uniform.middle, this.middle);
      gl.uniform1f(one.uniform.reach, 2.2 * Math.max(this.reach, this.away));
      gl.uniform3f(one.uniform.offset, ...[0, 1, 2].map((d) => (offset && offset[d]) || 0));
      gl.drawArrays(gl.TRIANGLES, 0, wall.count);
    }
  }

  drawCables(frame, dark) {
    const { gl, film } = this, one = this.use("wire");
    gl.uniform4f(one.uniform.tint, ...(dark ? [0.95, 0.88, 0.7] : [0.17, 0.15, 0.13]), 1);
    for (const cable of this.cables) {
      const corners = new Float32Array(3 * cable.points.length);
      cable.points.forEach(({ particles, anchor }, k) => {
        const places = anchor ? [anchor] : particles.map((p) => placeOf(film, frame, p));
        for (let d = 0; d < 3; d++) corners[3 * k + d] = places.reduce((sum, place) => sum + (place[d] || 0), 0) / places.length;
      });
      gl.bindBuffer(gl.ARRAY_BUFFER, cable.buffer);
      gl.bufferSubData(gl.ARRAY_BUFFER, 0, corners);
      this.attribute(one.at.corner, cable.buffer, 3, gl.FLOAT, false);
      gl.drawArrays(gl.LINE_STRIP, 0, cable.points.length);
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
    const from = on ? this.target : this.middle;
    this.anchor = this.centres[frame];
    this.target = on ? [this.anchor[0], from[1], this.anchor[2]] : from;
    if (on) this.away = Math.min(this.away, 5 * this.spread(frame));
    this.follow = on;
  }

  // root of the mean square distance from the centre
  spread(frame) {
    const { count, dim, frames, positions } = this.film, centre = this.centres[frame];
    let sum = 0;
    for (let d = 0; d < dim; d++) {
      for (let k = d * count; k < (d + 1) * count; k++) sum += (positions.origin[d] + positions.quantum[d] * frames[frame][k] - centre[d]) ** 2;
    }
    return Math.sqrt(sum / count) * 1.6;
  }

  zoom(factor) { this.away = Math.max(0.02 * this.reach, Math.min(20 * this.reach, this.away * factor)); }

  // the nearest drawn particle under a place of the canvas; -1: none
  pick(px, py, frame) {
    const { film, view: m, project } = this, { count } = film, wide = this.canvas.clientWidth, high = this.canvas.clientHeight;
    let best = -1, depth = Infinity;
    for (let k = 0; k < count; k++) {
      if (!this.inner && !film.inside[k]) continue;
      const [x, y, z] = placeOf(film, frame, k);
      const w = -(m[2] * x + m[6] * y + m[10] * z + m[14]);
      if (w <= 0 || w >= depth) continue;
      const sx = (0.5 + 0.5 * project[0] * (m[0] * x + m[4] * y + m[8] * z + m[12]) / w) * wide;
      const sy = (0.5 - 0.5 * project[5] * (m[1] * x + m[5] * y + m[9] * z + m[13]) / w) * high;
      const radius = Math.max(3, 0.5 * high * project[5] * film.radius.largest * FULL / w);
      if ((sx - px) ** 2 + (sy - py) ** 2 < radius ** 2) [best, depth] = [k, w];
    }
    return best;
  }
}
