// Where nodes stand: forces in slices of a frame, then boxes pushed apart so that no label lies upon another.

import type Graph from "graphology";
import iterate from "graphology-layout-forceatlas2/iterate.js";

export interface Point {
  x: number;
  y: number;
}

/** A node with the room that it and its label take, in pixels. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

/** From where to where a picture reaches, labels included. */
export interface Extent {
  readonly x: [number, number];
  readonly y: [number, number];
}

const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));
/** The forces get half of the time between two frames, but at least and at most so many ms of it. */
const SLICE_MS = [10, 50] as const;
const UNIT = 10;
const FILLED = 0.6;
const MOST_SEPARATED = 250;
/** How many numbers of a node and of a line the forces work on. */
const NODE = 10;
const LINE = 3;

/** Place new nodes around those that they came from, in a spiral, so that the same graph always looks the same. */
export function placed(from: Point | undefined, number: number): Point {
  const radius = (from ? 2 : 0) + 2 * Math.sqrt(number + (from ? 1 : 0));
  const angle = number * GOLDEN_ANGLE;
  return { x: (from?.x ?? 0) + radius * Math.cos(angle), y: (from?.y ?? 0) + radius * Math.sin(angle) };
}

/** How many rounds of forces a graph of a size gets: small ones come to rest, large ones stay quick. */
export function roundsFor(nodes: number): number {
  return Math.round(Math.max(60, Math.min(400, 150_000 / Math.max(nodes, 1))));
}

/** Push boxes apart until none overlaps, or the rounds are used up; along the side of the lesser overlap for its length. */
export function separated(boxes: readonly Box[], rounds = 60): Point[] {
  const points = boxes.map(({ x, y }) => ({ x, y }));
  for (let round = 0; round < rounds; round += 1) {
    let moved = false;
    for (let i = 0; i < boxes.length; i += 1)
      for (let j = i + 1; j < boxes.length; j += 1) {
        const [a, b, p, q] = [boxes[i], boxes[j], points[i], points[j]];
        if (!a || !b || !p || !q) continue;
        const [dx, dy] = [q.x - p.x, q.y - p.y];
        const [overX, overY] = [(a.width + b.width) / 2 - Math.abs(dx), (a.height + b.height) / 2 - Math.abs(dy)];
        if (overX <= 0.01 || overY <= 0.01) continue;
        moved = true;
        if (overX / (a.width + b.width) < overY / (a.height + b.height)) {
          p.x -= (overX / 2) * (dx < 0 ? -1 : 1);
          q.x += (overX / 2) * (dx < 0 ? -1 : 1);
        } else {
          p.y -= (overY / 2) * (dy < 0 ? -1 : 1);
          q.y += (overY / 2) * (dy < 0 ? -1 : 1);
        }
      }
    if (!moved) break;
  }
  return points;
}

/** Return how far a point lies from the line between two others. */
export function distance({ x, y }: Point, from: Point, to: Point): number {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const along = ((x - from.x) * dx + (y - from.y) * dy) / (dx * dx + dy * dy || 1);
  const share = Math.max(0, Math.min(1, along));
  return Math.hypot(from.x + share * dx - x, from.y + share * dy - y);
}

/** Lays out a graph while its page stays usable; a change starts it again from where the nodes are. */
export class Layout {
  private frame = 0;
  private left = 0;
  private before = 0;
  private nodes = new Float32Array();
  private lines = new Float32Array();
  private settings: Record<string, number | boolean> = {};

  constructor(
    private readonly graph: Graph,
    private readonly box: (node: string) => { width: number; height: number },
    private readonly view: () => { width: number; height: number },
    private readonly onMove: () => void,
    private readonly onRest: (extent: Extent | null) => void,
  ) {}

  start(): void {
    this.stop();
    this.left = roundsFor(this.graph.order);
    this.before = performance.now();
    this.read();
    if (this.graph.order < 2) this.rest();
    else if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.hurry();
    else this.frame = requestAnimationFrame(this.slice);
  }

  stop(): void {
    this.left = 0;
    this.pause(true);
  }

  /** Rest, or go on from there. */
  pause(isPaused: boolean): void {
    cancelAnimationFrame(this.frame);
    this.frame = !isPaused && this.left > 0 ? requestAnimationFrame(this.slice) : 0;
  }

  private hurry(): void {
    this.rounds(400);
    this.rest();
  }

  private readonly slice = (now: number): void => {
    this.rounds(Math.max(SLICE_MS[0], Math.min(SLICE_MS[1], (now - this.before) / 2)));
    this.before = now;
    this.onMove();
    if (this.left > 0) this.frame = requestAnimationFrame(this.slice);
    else this.rest();
  };

  /** Let the forces act for some time, in ms. */
  private rounds(most: number): void {
    const until = performance.now() + most;
    for (; this.left > 0 && performance.now() < until; this.left -= 1) iterate(this.settings, this.nodes, this.lines);
    let at = 0;
    this.graph.forEachNode((_, node) => {
      [node.x, node.y] = [this.nodes[at], this.nodes[at + 1]];
      at += NODE;
    });
  }

  /** Read the graph into the numbers that the forces work on. */
  private read(): void {
    const { order, size } = this.graph;
    const [nodes, lines] = [new Float32Array(order * NODE), new Float32Array(size * LINE)];
    const places = new Map<string, number>();
    this.graph.forEachNode((id, node) => {
      const at = places.size * NODE;
      places.set(id, at);
      // Where it is, four forces, its mass, how calm it is, its size, and that it may move.
      nodes.set([node.x, node.y, 0, 0, 0, 0, 1 + this.graph.degree(id), 1, node.size, 0], at);
    });
    let at = 0;
    this.graph.forEachEdge((_id, _line, source, target) => {
      lines.set([places.get(source) ?? 0, places.get(target) ?? 0, 1], at);
      at += LINE;
    });
    [this.nodes, this.lines] = [nodes, lines];
    this.settings = {
      barnesHutOptimize: order > 300,
      barnesHutTheta: 0.5,
      edgeWeightInfluence: 1,
      gravity: 0.6,
      scalingRatio: 12,
      slowDown: 2 + Math.log(order + 1),
    };
  }

  private rest(): void {
    this.frame = 0;
    this.left = 0;
    this.onRest(this.graph.order >= 2 && this.graph.order <= MOST_SEPARATED ? this.separate() : null);
  }

  /** Fill the view, which is seldom square, and make room for labels, at the scale that the whole will have. */
  private separate(): Extent {
    const { width, height } = this.view();
    const nodes = this.graph.nodes();
    const whole = nodes.map((node): Box => ({ ...this.pointOf(node), ...this.box(node) }));
    const area = whole.reduce((sum, box) => sum + box.width * box.height, 0);
    // Where not all labels find room, those of the smallest nodes show only when the picture is zoomed.
    const share = Math.min(1, Math.sqrt((FILLED * width * height) / area));
    let boxes = whole.map((box): Box => ({ ...box, width: box.width * share, height: box.height * share }));
    for (let round = 0; round < 6; round += 1) {
      const { x, y } = extentOf(boxes);
      const scale = Math.min(width / (x[1] - x[0]), height / (y[1] - y[0]));
      // The first time from the unit of the forces, in which labels have no size yet.
      const stretch = round === 0 ? 3.2 : 1.2;
      const [scaleX, scaleY] = [
        Math.min(width / (x[1] - x[0]), scale * stretch),
        Math.min(height / (y[1] - y[0]), scale * stretch),
      ];
      const scaled = boxes.map((box) => ({ ...box, x: (box.x - x[0]) * scaleX, y: (box.y - y[0]) * scaleY }));
      const points = separated(scaled);
      boxes = scaled.map((box, at) => ({ ...box, ...points[at] }));
    }
    // From pixels to about the unit of the forces, which may go on from there.
    nodes.forEach((node, at) => {
      const { x = 0, y = 0 } = boxes[at] ?? {};
      this.graph.mergeNodeAttributes(node, { x: x / UNIT, y: y / UNIT });
    });
    const sides = boxes.map(({ width: w, x }) => [x - w / 2, x + w / 2] as const);
    const ends = boxes.map(({ height: h, y }) => [y - h / 2, y + h / 2] as const);
    return { x: inUnits(reach(sides)), y: inUnits(reach(ends)) };
  }

  private pointOf(node: string): Point {
    return { x: this.graph.getNodeAttribute(node, "x"), y: this.graph.getNodeAttribute(node, "y") };
  }
}

function extentOf(points: readonly Point[]): Extent {
  return { x: reach(points.map(({ x }) => [x, x])), y: reach(points.map(({ y }) => [y, y])) };
}

function inUnits([from, to]: [number, number]): [number, number] {
  return [from / UNIT, to / UNIT];
}

/** Return from where to where intervals reach; never nothing, as it is divided by. */
function reach(intervals: readonly (readonly [number, number])[]): [number, number] {
  const from = Math.min(...intervals.map(([low]) => low));
  return [from, Math.max(from + 0.001, ...intervals.map(([, high]) => high))];
}
