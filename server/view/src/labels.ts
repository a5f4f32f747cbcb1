// Texts in the picture, and the room that they take.

export interface Rectangle {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

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
