// The picture as a file, built as elements, so that no text of a graph becomes markup.

import { FONT } from "./labels";
import type { Point } from "./layout";
import type { Heads } from "./scene";

/** A text as it stands in the picture, turned by an angle; `y` is its top, or its middle where it is turned. */
export interface Written extends Point {
  readonly text: string;
  readonly px: number;
  readonly color: string;
  readonly angle: number | null;
}

export interface Dot extends Point {
  readonly size: number;
  readonly color: string;
}

export interface Stroke {
  readonly from: Dot;
  readonly to: Dot;
  readonly size: number;
  readonly color: string;
  readonly heads: Heads;
}

export interface Sheet {
  readonly width: number;
  readonly height: number;
  readonly background: string;
  readonly strokes: readonly Stroke[];
  readonly dots: readonly Dot[];
  readonly texts: readonly Written[];
}

const SVG = "http://www.w3.org/2000/svg";
const SCALE = 2;

/** What XML cannot hold. */
const NO_XML = /[\p{Cc}\p{Cs}\ufffe\uffff]/gu;

function shape(name: string, attributes: Readonly<Record<string, string | number>>, text = ""): SVGElement {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes))
    made.setAttribute(key, typeof value === "number" ? String(Math.round(value * 100) / 100) : value);
  made.textContent = text.replace(NO_XML, "\ufffd");
  return made;
}

function head({ size, color }: Stroke, tip: Point, unit: Point): SVGElement {
  const [x, y] = [tip.x - 2.5 * size * unit.x, tip.y - 2.5 * size * unit.y];
  const ends = [tip.x, tip.y, x - size * unit.y, y + size * unit.x, x + size * unit.y, y - size * unit.x];
  return shape("polygon", { points: ends.map((each) => each.toFixed(2)).join(" "), fill: color });
}

function stroked(each: Stroke): SVGElement[] {
  const { from, to, size, color, heads } = each;
  const [hasHead, isBoth] = [heads !== "none", heads === "both"];
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const unit = { x: (to.x - from.x) / length, y: (to.y - from.y) / length };
  const back = { x: -unit.x, y: -unit.y };
  const at = (end: Point, way: Point, far: number): Point => ({ x: end.x + way.x * far, y: end.y + way.y * far });
  const [tip, tail] = [at(to, back, to.size), at(from, unit, from.size)];
  const [start, end] = [isBoth ? at(tail, unit, 2.5 * size) : tail, hasHead ? at(tip, back, 2.5 * size) : tip];
  const shaft = { x1: start.x, y1: start.y, x2: end.x, y2: end.y, stroke: color, "stroke-width": size };
  return [
    shape("line", shaft),
    ...(hasHead ? [head(each, tip, unit)] : []),
    ...(isBoth ? [head(each, tail, back)] : []),
  ];
}

function written({ text, x, y, px, color, angle }: Written, background: string): SVGElement {
  const place = { x: 0, y: 0, transform: `translate(${x} ${y})${angle ? ` rotate(${(angle * 180) / Math.PI})` : ""}` };
  const ink = { fill: color, stroke: background, "stroke-width": 4, "paint-order": "stroke", "font-size": px };
  return shape("text", { ...place, ...ink, dy: angle === null ? ".8em" : ".35em" }, text);
}

/** Return a picture as the text of an SVG file. */
export function svgOf({ width, height, background, strokes, dots, texts }: Sheet): string {
  const root = shape("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "font-family": FONT });
  root.setAttribute("text-anchor", "middle");
  root.setAttribute("stroke-linejoin", "round");
  root.append(
    shape("rect", { width, height, fill: background }),
    ...strokes.flatMap(stroked),
    ...dots.map(({ x, y, size, color }) => shape("circle", { cx: x, cy: y, r: size, fill: color })),
    ...texts.map((each) => written(each, background)),
  );
  return new XMLSerializer().serializeToString(root);
}

/** Save an SVG, or what it looks like as PNG, as a file of the browser. */
export async function save(sheet: Sheet, kind: "svg" | "png"): Promise<void> {
  const svg = svgOf(sheet);
  const blob = kind === "svg" ? new Blob([svg], { type: "image/svg+xml" }) : await pngOf(svg, sheet);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${document.title.replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60) || "graph"}.${kind}`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

async function pngOf(svg: string, { width, height }: Sheet): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [width * SCALE, height * SCALE];
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return await new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("This browser cannot make a PNG so large."))));
  });
}
