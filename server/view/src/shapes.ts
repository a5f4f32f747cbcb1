// The shapes of the picture on WebGL, in pixels: circles, and lines that end in heads. Each corner is stored by itself, as
// instances of so few corners cost a renderer in software more than all their pixels.

import type { Attributes } from "graphology-types";
import type Sigma from "sigma";
import { EdgeProgram, type EdgeProgramType, NodeProgram, type ProgramInfo } from "sigma/rendering";
import type { EdgeDisplayData, NodeDisplayData, RenderParams } from "sigma/types";
import { floatColor } from "sigma/utils";
import type { Heads } from "./scene";

const { FLOAT, TRIANGLES, UNSIGNED_BYTE } = WebGLRenderingContext;
const floats = (name: string, size: number) => ({ name, size, type: FLOAT });
const COLOR = { name: "a_color", size: 4, type: UNSIGNED_BYTE, normalized: true };

const VERTEX = `
attribute vec4 a_color;
uniform mat3 u_matrix;
uniform vec2 u_half;
uniform float u_scale;
varying vec3 v_color;
varying vec2 v_from;
varying float v_most;
vec2 pixel(vec2 at) { return (u_matrix * vec3(at, 1)).xy * u_half; }`;

const CIRCLE = `${VERTEX}
attribute vec2 a_at, a_corner;
attribute float a_size;
void main() {
  v_color = a_color.rgb;
  v_most = a_size * u_scale;
  v_from = a_corner * (v_most + 1.);
  gl_Position = vec4((pixel(a_at) + v_from) / u_half, 0, 1);
}`;

const LINE = `${VERTEX}
attribute vec2 a_from, a_to;
attribute vec3 a_size, a_corner;
void main() {
  v_color = a_color.rgb;
  vec2 from = pixel(a_from), way = pixel(a_to) - from;
  float whole = max(length(way), .001), width = max(a_size.x * u_scale, 1.), head = 2.5 * width * a_corner.z;
  v_most = abs(a_corner.y) * width / 2.;
  v_from = vec2(0, a_corner.y * width / 2. + sign(a_corner.y));
  vec2 unit = way / whole;
  float along = mix(a_size.y * u_scale + head, whole - a_size.z * u_scale - head, a_corner.x);
  gl_Position = vec4((from + unit * along + vec2(-unit.y, unit.x) * v_from.y) / u_half, 0, 1);
}`;

/** It fades over a pixel. */
const FRAGMENT = `precision highp float;
varying vec3 v_color;
varying vec2 v_from;
varying float v_most;
void main() { gl_FragColor = vec4(v_color, 1) * clamp(v_most + .5 - length(v_from), 0., 1.); }`;

const SHAPE = { FRAGMENT_SHADER_SOURCE: FRAGMENT, METHOD: TRIANGLES, UNIFORMS: ["u_matrix", "u_half", "u_scale"] };

/** A triangle around the circle of radius 1. */
const AROUND = [0, 2, -Math.sqrt(3), -1, Math.sqrt(3), -1];
/** Corners of a line: at which end, how many halves of its width aside, and whether behind a head. */
const HEAD = [1, 0, 0, 1, -2, 1, 1, 2, 1];
const TAIL = [0, 0, 0, 0, -2, 1, 0, 2, 1];
const shaft = (from: number, to: number): number[] => [
  ...[0, -1, from, 0, 1, from, 1, -1, to],
  ...[0, 1, from, 1, -1, to, 1, 1, to],
];

function setUniforms({ matrix, width, height, pixelRatio, sizeRatio }: RenderParams, made: ProgramInfo): void {
  const { gl } = made;
  const { u_matrix = null, u_half = null, u_scale = null } = made.uniformLocations;
  gl.uniformMatrix3fv(u_matrix, false, matrix);
  gl.uniform2f(u_half, (width * pixelRatio) / 2, (height * pixelRatio) / 2);
  gl.uniform1f(u_scale, pixelRatio / sizeRatio);
}

/** A node as a circle, on the layer of the lines; it is not drawn again for the mouse to find it, as sigma would. */
export class Circles<N extends Attributes, E extends Attributes> extends NodeProgram<string, N, E> {
  constructor(gl: WebGLRenderingContext, forMouse: WebGLFramebuffer | null, sigma: Sigma<N, E>) {
    const layer = sigma.getCanvases().edges;
    // A node that the mouse is on is drawn on a separate layer.
    super(forMouse ? (layer?.getContext("webgl2") ?? layer?.getContext("webgl") ?? gl) : gl, null, sigma);
  }

  override getDefinition() {
    const attributes = [floats("a_at", 2), floats("a_size", 1), COLOR, floats("a_corner", 2)];
    return { ...SHAPE, VERTICES: 3, VERTEX_SHADER_SOURCE: CIRCLE, ATTRIBUTES: attributes };
  }

  override processVisibleItem(_: number, start: number, { x, y, size, color }: NodeDisplayData): void {
    const { array } = this;
    const ink = floatColor(color);
    for (let corner = 0, at = start; corner < AROUND.length; corner += 2) {
      array[at++] = x;
      array[at++] = y;
      array[at++] = size;
      array[at++] = ink;
      array[at++] = AROUND[corner] ?? 0;
      array[at++] = AROUND[corner + 1] ?? 0;
    }
  }

  override setUniforms(given: RenderParams, made: ProgramInfo): void {
    setUniforms(given, made);
  }
}

/** Make the kind of lines with such heads; what is drawn first lies uppermost, nodes before all. */
export function lines<N extends Attributes, E extends Attributes>(heads: Heads): EdgeProgramType<N, E> {
  const [to, from] = [heads === "none" ? [] : HEAD, heads === "both" ? TAIL : []];
  const corners = [...shaft(Math.sign(from.length), Math.sign(to.length)), ...to, ...from];
  return class extends EdgeProgram<string, N, E> {
    override getDefinition() {
      const attributes = [floats("a_from", 2), floats("a_to", 2), floats("a_size", 3), COLOR, floats("a_corner", 3)];
      return { ...SHAPE, VERTICES: corners.length / 3, VERTEX_SHADER_SOURCE: LINE, ATTRIBUTES: attributes };
    }

    override processVisibleItem(
      _: number,
      start: number,
      from: NodeDisplayData,
      to: NodeDisplayData,
      { size, color }: EdgeDisplayData,
    ): void {
      const { array } = this;
      const ink = floatColor(color);
      for (let corner = 0, at = start; corner < corners.length; ) {
        array[at++] = from.x;
        array[at++] = from.y;
        array[at++] = to.x;
        array[at++] = to.y;
        array[at++] = size;
        array[at++] = from.size;
        array[at++] = to.size;
        array[at++] = ink;
        array[at++] = corners[corner++] ?? 0;
        array[at++] = corners[corner++] ?? 0;
        array[at++] = corners[corner++] ?? 0;
      }
    }

    override setUniforms(given: RenderParams, made: ProgramInfo): void {
      setUniforms(given, made);
    }

    protected override renderProgram(given: RenderParams, made: ProgramInfo): void {
      const { gl } = made;
      gl.blendFunc(gl.ONE_MINUS_DST_ALPHA, gl.ONE);
      super.renderProgram(given, made);
      gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    }
  };
}
