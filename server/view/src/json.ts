// JSON of unknown shape, read without trust: whatever is not as expected counts as empty.

export type Data = Readonly<Record<string, unknown>>;

export function isData(value: unknown): value is Data {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function dataOf(value: unknown): Data {
  return isData(value) ? value : {};
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function countOf(value: unknown): number {
  return typeof value === "number" && Number.isFinite(value) ? value : 0;
}

export function textsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === "string") : [];
}

/** Rows of texts; what is no text in a row is empty. */
export function rowsOf(value: unknown): string[][] {
  return Array.isArray(value) ? value.filter(Array.isArray).map((row: unknown[]) => row.map(textOf)) : [];
}

export function textsById(value: unknown): Map<string, string> {
  return new Map(isData(value) ? Object.entries(value).map(([id, text]) => [id, textOf(text)]) : []);
}

export function countsById(value: unknown): Map<string, number> {
  return new Map(isData(value) ? Object.entries(value).map(([id, count]) => [id, countOf(count)]) : []);
}
