// Texts in the picture, and the room that they take.

export interface Colors {
  readonly text: string;
  readonly muted: string;
  readonly background: string;
  readonly line: string;
  readonly accent: string;
}

export interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

export const FONT = "system-ui, sans-serif";
export const LABEL_PX = 13;
const MOST_LABEL = 26;

export function around(x: number, y: number, halfX: number, halfY: number): Rectangle {
  return { left: x - halfX, right: x + halfX, top: y - halfY, bottom: y + halfY };
}

export function meets(room: Rectangle, others: readonly Rectangle[]): boolean {
  return others.some(
    (other) => room.left < other.right && room.right > other.left && room.top < other.bottom && room.bottom > other.top,
  );
}

export function cut(text: string, most = MOST_LABEL): string {
  const characters = [...text.slice(0, 4 * most)];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
}

export function outlined(
  context: CanvasRenderingContext2D,
  label: string,
  x: number,
  y: number,
  font: string,
  color: string,
  background: string,
): void {
  context.font = font;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeStyle = background;
  context.strokeText(label, x, y);
  context.fillStyle = color;
  context.fillText(label, x, y);
}

/** Write a label in a box below a node, and a ring around that. */
export function boxed(
  context: CanvasRenderingContext2D,
  { x, y, size }: { readonly x: number; readonly y: number; readonly size: number },
  label: string,
  width: number,
  { text, background, accent }: Colors,
): void {
  const top = y + size + 2;
  context.beginPath();
  context.roundRect(x - width / 2, top, width, LABEL_PX + 11, 6);
  context.fillStyle = background;
  context.fill();
  context.lineWidth = 1.5;
  context.strokeStyle = accent;
  context.stroke();
  context.beginPath();
  context.arc(x, y, size + 3, 0, 2 * Math.PI);
  context.stroke();
  context.textAlign = "center";
  context.textBaseline = "top";
  context.font = `600 ${LABEL_PX}px ${FONT}`;
  context.fillStyle = text;
  context.fillText(label, x, top + 5);
}
