// Elements of the page. Whatever comes from a graph enters as text, never as markup.

type Child = Node | string | null | undefined | false;

export interface Attributes {
  readonly [name: string]: string | number | boolean | null | undefined | ((event: Event) => void);
}

/** Make an element; an attribute that begins with `on` is a listener, one that is false or null is left out. */
export function el<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Name] {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.filter((each) => each !== null && each !== undefined && each !== false));
  return made;
}

/** Return the element of the page with an id. */
export function byId<Kind extends HTMLElement>(id: string, kind: new () => Kind): Kind {
  const found = document.getElementById(id);
  if (found instanceof kind) return found;
  throw new Error(`The page has no element ${id} of the kind ${kind.name}.`);
}

export function button(label: string, onclick: (event: Event) => void, attributes: Attributes = {}): HTMLButtonElement {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

/** Replace what an element holds, and keep the focus on what has the same `data-key`. */
export function refill(parent: HTMLElement, ...children: Child[]): void {
  const focused = document.activeElement;
  const key = focused instanceof HTMLElement && parent.contains(focused) ? focused.dataset.key : undefined;
  parent.replaceChildren(...children.filter((each) => each !== null && each !== undefined && each !== false));
  if (key === undefined) return;
  for (const each of parent.querySelectorAll<HTMLElement>("[data-key]"))
    if (each.dataset.key === key) each.focus({ preventScroll: true });
}

const MOST_SHOWN = 2_000;

/** Return a text without what would turn the direction of the text around it, and not endlessly long. */
export function plain(text: string, most = MOST_SHOWN): string {
  const visible = text.slice(0, most).replace(/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/g, "\ufffd");
  return text.length > most ? `${visible}…` : visible;
}

/** Return in words why something failed. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export function counted(number: number, one: string, many = `${one}s`): string {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}
