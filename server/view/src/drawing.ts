// The picture: nodes and lines on WebGL by sigma, their labels on the canvas above it.

import Graph from "graphology";
import Sigma from "sigma";
import type { EdgeDisplayData, NodeDisplayData, PartialButFor } from "sigma/types";
import { around, boxed, type Colors, cut, FONT, LABEL_PX, meets, outlined, type Rectangle } from "./labels";
import { distance, type Extent, Layout, type Point, placed } from "./layout";
import type { Dot, Sheet, Written } from "./saving";
import { type Heads, type Line, neighboursIn } from "./scene";
import { Circles, lines } from "./shapes";

export interface DrawnNode {
  readonly id: string;
  readonly label: string;
  /** A second line, such as how many neighbours are not drawn. */
  readonly note: string;
  readonly color: string;
  readonly size: number;
  readonly evidence: boolean;
  /** Whether it was selected before the one that is, and kept. */
  readonly also: boolean;
}

export interface Handlers {
  readonly onSelect: (id: string | null, isMore: boolean) => void;
  readonly onExpand: (id: string) => void;
  readonly onLine: (ends: readonly string[]) => void;
}

interface NodeAttributes extends Point {
  label: string;
  note: string;
  color: string;
  size: number;
  evidence: boolean;
  also: boolean;
  forceLabel: boolean;
  zIndex: number;
}

interface LineAttributes {
  label: string;
  /** The names of all its relations. */
  whole: string;
  size: number;
  color: string;
  type: Heads;
  zIndex: number;
}

type ShownNode = PartialButFor<NodeDisplayData, "x" | "y" | "size" | "label" | "color">;
type ShownLine = PartialButFor<EdgeDisplayData, "label" | "color" | "size">;
type End = PartialButFor<NodeDisplayData, "x" | "y" | "size">;
/** A node whose label a frame may show. */
interface Planned extends Point {
  readonly id: string;
  readonly rank: number;
  readonly radius: number;
  readonly label: string;
  readonly note: string;
}

const [NOTE_PX, EDGE_PX] = [11, 11];
const [PADDING, MARGIN] = [24, 90];
const ALL_LABELS = 150;
/** Up to so many nodes are drawn in full size. */
const FULL_SIZE = 200;
/** How near a click must come to what is smaller, in pixels. */
const NEAR = 5;
/** How many labels may lie upon nodes of others. */
const FOREMOST = 14;

export class Drawing {
  private readonly graph = new Graph<NodeAttributes, LineAttributes>({ type: "directed" });
  private readonly sigma: Sigma<NodeAttributes, LineAttributes>;
  private readonly layout: Layout;
  private readonly measuring = document.createElement("canvas").getContext("2d");
  private taken: Rectangle[] = [];
  private texts: Written[] = [];
  private readonly planned = new Set<string>();
  private isPlanned = false;
  private selected: string | null = null;
  private hovered: string | null = null;
  private hoveredLine: string | null = null;
  private dragged: string | null = null;
  private extent: Extent | null = null;

  /** @throws Error where the browser draws no WebGL */
  constructor(
    private readonly container: HTMLElement,
    private readonly colors: () => Colors,
    private readonly handlers: Handlers,
  ) {
    this.sigma = new Sigma<NodeAttributes, LineAttributes>(this.graph, container, {
      allowInvalidContainer: true,
      defaultEdgeType: "end",
      nodeProgramClasses: { circle: Circles<NodeAttributes, LineAttributes> },
      edgeProgramClasses: {
        none: lines<NodeAttributes, LineAttributes>("none"),
        end: lines<NodeAttributes, LineAttributes>("end"),
        both: lines<NodeAttributes, LineAttributes>("both"),
      },
      renderEdgeLabels: true,
      stagePadding: PADDING,
      zIndex: true,
      labelFont: FONT,
      labelSize: LABEL_PX,
      labelRenderedSizeThreshold: 0,
      labelDensity: 3,
      labelGridCellSize: 90,
      minCameraRatio: 0.02,
      maxCameraRatio: 4,
      defaultDrawNodeLabel: (context, data) => this.drawLabel(context, data),
      defaultDrawNodeHover: (context, data) => this.drawHover(context, data),
      defaultDrawEdgeLabel: (_, line, source, target) => this.drawLineLabel(line, source, target),
      nodeReducer: (id, data) => this.nodeNow(id, data),
      edgeReducer: (id, data) => this.lineNow(id, data),
    });
    const room = (): { width: number; height: number } => ({
      width: Math.max(container.clientWidth - 2 * (PADDING + Math.min(MARGIN, container.clientWidth / 8)), 100),
      height: Math.max(container.clientHeight - 4 * PADDING, 100),
    });
    this.layout = new Layout(
      this.graph,
      (node) => this.boxOf(node),
      room,
      () => this.sigma.refresh({ partialGraph: {} }),
      (extent) => this.rest(extent),
    );
    // sigma would draw everything a second time to read back what lies under the mouse.
    const at = (point: Point): string | null => this.nodeAt(point);
    Object.defineProperty(this.sigma, "getNodeAtPosition", { value: at });
    Object.defineProperty(this.sigma, "getEdgeAtPoint", { value: (x: number, y: number) => this.lineAt({ x, y }) });
    this.sigma.setSetting("enableEdgeEvents", true);
    this.showHovers(false);
    this.listen();
  }

  /** Return the node at a place of the view, in pixels. */
  private nodeAt(place: Point): string | null {
    const { x, y } = this.sigma.viewportToGraph(place);
    const pixel = 1 / this.sigma.getGraphToViewportRatio();
    let [best, least]: [string | null, number] = [null, 1];
    this.graph.forEachNode((id, node) => {
      const share = Math.hypot(node.x - x, node.y - y) / (Math.max(this.sigma.scaleSize(node.size), NEAR) * pixel);
      if (share < least) [best, least] = [id, share];
    });
    return best;
  }

  /** Return the line that lies nearest to a place of the view, in pixels. */
  private lineAt(place: Point): string | null {
    const { x, y } = this.sigma.viewportToGraph(place);
    let [best, least]: [string | null, number] = [null, NEAR / this.sigma.getGraphToViewportRatio()];
    this.graph.forEachEdge((id, _line, _source, _target, from, to) => {
      const far = distance({ x, y }, from, to);
      if (far < least) [best, least] = [id, far];
    });
    return best;
  }

  /** Draw these nodes and lines; those that are there already stay where they are. */
  show(nodes: readonly DrawnNode[], lines: readonly Line[], selected: string | null): void {
    const kept = new Set(nodes.map((node) => node.id));
    const before = this.graph.order;
    let changed = false;
    for (const id of this.graph.nodes().filter((id) => !kept.has(id))) {
      this.graph.dropNode(id);
      changed = true;
    }
    const neighbours = neighboursIn(lines);
    const fresh = before > 0 && !nodes.some((node) => this.graph.hasNode(node.id));
    const around = new Map<string, number>();
    const share = Math.max(0.25, Math.min(1, Math.sqrt(FULL_SIZE / nodes.length)));
    nodes.forEach((node, number) => {
      const { id, ...rest } = node;
      const attributes = {
        ...rest,
        size: node.size * share,
        forceLabel: node.evidence || nodes.length <= ALL_LABELS,
        zIndex: node.evidence ? 2 : 1,
      };
      if (this.graph.hasNode(id)) this.graph.mergeNodeAttributes(id, attributes);
      else {
        const from = (neighbours.get(id) ?? []).find((each) => this.graph.hasNode(each));
        const count = from === undefined ? number : (around.get(from) ?? 0);
        if (from !== undefined) around.set(from, count + 1);
        this.graph.addNode(id, {
          ...placed(from === undefined ? undefined : this.pointOf(from), count),
          ...attributes,
        });
        changed = true;
      }
    });
    this.graph.clearEdges();
    const { line, accent } = this.colors();
    for (const each of lines)
      this.graph.addDirectedEdge(each.source, each.target, {
        label: each.label,
        whole: each.whole,
        size: share * (each.evidence ? 4 : each.heads === "none" ? 1 : 2.5),
        color: each.evidence ? accent : line,
        type: each.heads,
        // Lines with the least are drawn first, and lie uppermost.
        zIndex: each.evidence ? -2 : -1,
      });
    this.selected = selected;
    if (fresh || before === 0) void this.sigma.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
    if (changed) {
      this.rest(null);
      this.layout.start();
    } else this.sigma.refresh();
  }

  private rest(extent: Extent | null): void {
    this.extent = extent;
    this.sigma.setCustomBBox(extent);
    this.sigma.refresh();
  }

  select(id: string | null): void {
    this.selected = id;
    this.sigma.refresh({ skipIndexation: true });
  }

  fit(): void {
    void this.sigma.getCamera().animatedReset({ duration: this.duration });
  }

  zoom(closer: boolean): void {
    const camera = this.sigma.getCamera();
    void (closer
      ? camera.animatedZoom({ duration: this.duration })
      : camera.animatedUnzoom({ duration: this.duration }));
  }

  pause(isPaused: boolean): void {
    this.layout.pause(isPaused);
  }

  /** Stop, and give the browser back what the picture holds of WebGL. */
  end(): void {
    this.layout.stop();
    this.sigma.kill();
  }

  /** Return what is seen, to save it. */
  sheet(): Sheet {
    const { sigma, graph } = this;
    const dots = new Map<string, Dot>();
    graph.forEachNode((id) => {
      const data = sigma.getNodeDisplayData(id);
      if (data)
        dots.set(id, { ...sigma.framedGraphToViewport(data), size: sigma.scaleSize(data.size), color: data.color });
    });
    const strokes = graph.mapEdges((id, { type: heads }, source, target) => {
      const [from, to, data] = [dots.get(source), dots.get(target), sigma.getEdgeDisplayData(id)];
      if (!from || !to || !data) return [];
      const size = Math.max(1, sigma.scaleSize(data.size));
      return [{ from, to, size, color: data.color, heads }];
    });
    const seen = { strokes: strokes.flat(), dots: [...dots.values()], texts: this.texts };
    return { ...sigma.getDimensions(), background: this.colors().background, ...seen };
  }

  resize(): void {
    this.sigma.resize();
    this.sigma.refresh();
  }

  /** Return the node that lies nearest in a direction from another, or the one in the middle. */
  towards(id: string | null, direction: Point): string | null {
    if (id === null || !this.graph.hasNode(id)) return this.graph.nodes()[0] ?? null;
    const from = this.sigma.graphToViewport(this.pointOf(id));
    let [best, least] = [id, Number.POSITIVE_INFINITY];
    for (const other of this.graph.nodes()) {
      const to = this.sigma.graphToViewport(this.pointOf(other));
      const [dx, dy] = [to.x - from.x, to.y - from.y];
      const along = dx * direction.x + dy * direction.y;
      const cost = Math.hypot(dx, dy) + 2 * Math.abs(dx * direction.y - dy * direction.x);
      if (other !== id && along > 0 && cost < least) [best, least] = [other, cost];
    }
    return best;
  }

  private get duration(): number {
    return matchMedia("(prefers-reduced-motion: reduce)").matches ? 0 : 250;
  }

  private pointOf(id: string): Point {
    const { x, y } = this.graph.getNodeAttributes(id);
    return { x, y };
  }

  private listen(): void {
    const { sigma } = this;
    sigma.on("clickNode", ({ node, event }) => this.handlers.onSelect(node, event.original.shiftKey));
    sigma.on("doubleClickNode", (event) => {
      event.preventSigmaDefault();
      this.handlers.onExpand(event.node);
    });
    sigma.on("clickEdge", ({ edge }) => this.handlers.onLine(this.graph.extremities(edge)));
    sigma.on("clickStage", () => this.handlers.onSelect(null, false));
    sigma.on("enterNode", ({ node }) => this.hover(node));
    sigma.on("leaveNode", () => this.hover(null));
    sigma.on("enterEdge", ({ edge }) => this.hoverLine(edge));
    sigma.on("leaveEdge", () => this.hoverLine(null));
    // Only once it draws labels does it know where nodes will stand.
    sigma.on("beforeRender", () => {
      this.isPlanned = false;
    });
    sigma.on("downNode", ({ node }) => {
      this.dragged = node;
    });
    sigma.getMouseCaptor().on("mousemovebody", (event) => {
      if (this.dragged === null || !this.graph.hasNode(this.dragged)) return;
      this.layout.stop();
      if (!sigma.getCustomBBox()) sigma.setCustomBBox(sigma.getBBox());
      this.graph.mergeNodeAttributes(this.dragged, sigma.viewportToGraph(event));
      event.preventSigmaDefault();
      event.original.preventDefault();
    });
    sigma.getMouseCaptor().on("mouseup", () => {
      this.dragged = null;
      sigma.setCustomBBox(this.extent);
    });
  }

  private hoverLine(id: string | null): void {
    const edges = [this.hoveredLine ?? "", id ?? ""].filter((each) => this.graph.hasEdge(each));
    this.hoveredLine = id;
    this.container.style.cursor = (id ?? this.hovered) === null ? "" : "pointer";
    this.sigma.refresh({ partialGraph: { edges } });
  }

  private hover(id: string | null): void {
    this.hovered = id;
    this.showHovers(id !== null);
    this.container.style.cursor = id === null ? "" : "pointer";
    this.sigma.refresh({ skipIndexation: true });
  }

  /** Show the layers of what is hovered only while something is: empty ones cost as much as full ones. */
  private showHovers(isShown: boolean): void {
    const { hovers, hoverNodes } = this.sigma.getCanvases();
    for (const layer of [hovers, hoverNodes]) if (layer) layer.hidden = !isShown;
  }

  private nodeNow(id: string, data: NodeAttributes): Partial<NodeDisplayData> {
    const focus = this.hovered ?? this.selected;
    const near = focus === null || focus === id || !this.graph.hasNode(focus) || this.graph.areNeighbors(focus, id);
    if (near && id !== this.selected) return data;
    if (near) return { ...data, forceLabel: true, zIndex: 3, size: data.size + 2 };
    return this.hovered === null ? data : { ...data, color: this.colors().line, forceLabel: false, zIndex: 0 };
  }

  private lineNow(id: string, data: LineAttributes): Partial<EdgeDisplayData> {
    if (id === this.hoveredLine)
      return {
        ...data,
        label: data.whole,
        forceLabel: true,
        size: data.size + 1,
        zIndex: -4,
        color: this.colors().muted,
      };
    const focus = this.hovered ?? this.selected;
    if (focus === null || !this.graph.hasNode(focus)) return data;
    if (this.graph.hasExtremity(id, focus))
      return {
        ...data,
        size: data.size + 0.5,
        zIndex: -3,
        color: data.zIndex === -2 ? data.color : this.colors().muted,
      };
    return this.hovered === null ? data : { ...data, label: "", zIndex: 0 };
  }

  private boxOf(id: string): { width: number; height: number } {
    const { label, note, size } = this.graph.getNodeAttributes(id);
    const width = Math.max(this.widthOf(cut(label), LABEL_PX), this.widthOf(note, NOTE_PX), 2 * size);
    // Half as wide again leaves room for the labels of lines.
    return { width: width + 34, height: 2 * size + LABEL_PX + (note ? NOTE_PX + 4 : 0) + 34 };
  }

  private widthOf(text: string, px: number): number {
    if (!this.measuring) return text.length * px * 0.6;
    this.measuring.font = `${px}px ${FONT}`;
    return this.measuring.measureText(text).width;
  }

  /** Once a frame, choose which labels it has room for: the selected node's, evidence, then the largest nodes'. */
  private plan(): void {
    if (this.isPlanned) return;
    this.isPlanned = true;
    const { width, height } = this.sigma.getDimensions();
    const seen: Planned[] = [];
    this.taken = [];
    this.texts = [];
    this.planned.clear();
    this.graph.forEachNode((id, node) => {
      if (!node.forceLabel && id !== this.selected) return;
      const at = this.sigma.graphToViewport(node);
      if (at.x < 0 || at.y < 0 || at.x > width || at.y > height) return;
      const radius = this.sigma.scaleSize(node.size);
      const rank = id === this.selected ? 2_000 : node.evidence ? 1_000 + node.size : node.size;
      seen.push({ id, rank, radius, ...at, label: node.label, note: node.note });
    });
    seen.sort((one, other) => other.rank - one.rank);
    for (const { x, y, radius, rank } of seen) if (rank >= 1_000) this.taken.push(around(x, y, radius, radius));
    const middles = seen.map(({ x, y, radius }) => around(x, y, radius / 2, radius / 2));
    seen.forEach((each, number) => {
      const room = this.roomOf(each.label, each.note, each.x, each.y, each.radius);
      const isFree = !meets(room, this.taken) && (number < FOREMOST || !meets(room, middles));
      if (!isFree && each.rank < 2_000) return;
      this.planned.add(each.id);
      this.taken.push(room);
    });
    for (const { x, y, radius } of seen) this.taken.push(around(x, y, radius, radius));
  }

  private roomOf(label: string, note: string, x: number, y: number, radius: number): Rectangle {
    const half = Math.max(this.widthOf(cut(label), LABEL_PX), this.widthOf(note, NOTE_PX)) / 2;
    const top = y + radius + 4;
    // A node at the side has its whole label within the picture.
    const middle = Math.max(half, Math.min(x, this.sigma.getDimensions().width - half));
    return { left: middle - half, right: middle + half, top, bottom: top + LABEL_PX + (note ? NOTE_PX + 4 : 0) };
  }

  private drawLabel(context: CanvasRenderingContext2D, data: ShownNode): void {
    this.plan();
    const { text, muted, background, accent } = this.colors();
    const label = data.label ?? "";
    const note: string = data.note ?? "";
    const isSelected = data.key === this.selected || data.also;
    if (isSelected || data.evidence) {
      context.beginPath();
      context.arc(data.x, data.y, data.size + (isSelected ? 4 : 3), 0, 2 * Math.PI);
      context.lineWidth = isSelected ? 3 : 2;
      context.strokeStyle = accent;
      context.stroke();
    }
    const room = this.roomOf(label, note, data.x, data.y, data.size);
    if (!this.planned.has(data.key)) {
      if (data.forceLabel || meets(room, this.taken)) return;
      this.taken.push(room);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    const font = `${isSelected ? 600 : 400} ${LABEL_PX}px ${FONT}`;
    const x = (room.left + room.right) / 2;
    outlined(context, cut(label), x, room.top, font, text, background);
    this.texts.push({ text: cut(label), x, y: room.top, px: LABEL_PX, color: text, angle: null });
    if (!note) return;
    const y = room.top + LABEL_PX + 3;
    outlined(context, note, x, y, `${NOTE_PX}px ${FONT}`, muted, background);
    this.texts.push({ text: note, x, y, px: NOTE_PX, color: muted, angle: null });
  }

  private drawHover(context: CanvasRenderingContext2D, data: ShownNode): void {
    const label = cut(data.label ?? "", 80);
    boxed(context, data, label, this.widthOf(label, LABEL_PX) + 16, this.colors());
  }

  private drawLineLabel(line: ShownLine, from: End, to: End): void {
    // On the layer of the nodes' labels, which saves one.
    const context = this.sigma.getCanvases().labels?.getContext("2d");
    if (!context) return;
    this.plan();
    const { muted, text, background, accent } = this.colors();
    const isHovered = line.key === this.hoveredLine;
    const label = cut(line.label ?? "", isHovered ? 120 : 40);
    if (!label) return;
    const isMarked = line.color === accent || isHovered;
    const width = this.widthOf(label, EDGE_PX);
    const [dx, dy] = [to.x - from.x, to.y - from.y];
    const length = Math.hypot(dx, dy) - from.size - to.size;
    if (length < width + 22 && !isHovered) return;
    // In the middle of what is seen of the line, and upright.
    const along = (from.size + length / 2) / Math.hypot(dx, dy);
    const [x, y] = [from.x + dx * along, from.y + dy * along];
    const angle = Math.atan2(dy, dx);
    const upright = Math.abs(angle) > Math.PI / 2 ? angle + Math.PI : angle;
    const [cos, sin] = [Math.abs(Math.cos(angle)), Math.abs(Math.sin(angle))];
    const [halfX, halfY] = [(width * cos + EDGE_PX * sin) / 2, (width * sin + EDGE_PX * cos) / 2];
    const room = around(x, y, halfX, halfY);
    if (!isHovered && meets(room, this.taken)) return;
    this.taken.push(room);
    context.save();
    context.translate(x, y);
    if (!isHovered) context.rotate(upright);
    context.textAlign = "center";
    context.textBaseline = "middle";
    const color = isMarked ? text : muted;
    outlined(context, label, 0, 0, `${EDGE_PX}px ${FONT}`, color, background);
    context.restore();
    this.texts.push({ text: label, x, y, px: EDGE_PX, color, angle: isHovered ? 0 : upright });
  }
}
