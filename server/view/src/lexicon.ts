// What ids are called, of which class they are, and how many neighbours they have: it only grows.

import type { Described, Facts, RelationCount } from "./facts";

/** The class of a node of which none is known. */
export const NO_CLASS = "";

export class Lexicon {
  private readonly labels = new Map<string, string>();
  private readonly relations = new Map<string, string>();
  private readonly classes = new Map<string, string>();
  private readonly classLabels = new Map<string, string>();
  private readonly descriptions = new Map<string, string>();
  private readonly asked = new Set<string>();
  private readonly degrees = new Map<string, readonly RelationCount[]>();
  /** It grows with whatever may be drawn in another way. */
  version = 0;
  /** How many instances a class of the definition has. */
  readonly instances = new Map<string, number>();

  learn(facts: Pick<Facts, "labels" | "relations">): void {
    for (const [id, label] of facts.labels) if (label) this.set(this.labels, id, label);
    for (const [id, label] of facts.relations) if (label) this.set(this.relations, id, label);
  }

  describe(found: Described): void {
    // What has no name is called by its id, which tells less than its class.
    if (found.label && found.label !== localPart(found.id)) this.set(this.labels, found.id, found.label);
    this.asked.add(found.id);
    this.descriptions.set(found.id, found.description);
    const [first] = found.classes;
    if (first === undefined) return;
    this.set(this.classes, found.id, first.id);
    this.set(this.classLabels, first.id, first.label);
  }

  private set<Value>(map: Map<string, Value>, id: string, value: Value): void {
    if (map.get(id) === value) return;
    map.set(id, value);
    this.version += 1;
  }

  /** Return those of some nodes whose class was not asked for yet, and count them as asked. */
  undescribed(ids: Iterable<string>, most: number): string[] {
    const found = [...ids].filter((id) => !this.asked.has(id) && !id.startsWith("_:")).slice(0, most);
    for (const id of found) this.asked.add(id);
    return found;
  }

  count(id: string, counts: readonly RelationCount[]): void {
    this.set(this.degrees, id, counts);
  }

  /** Return the neighbours of a node by relation; undefined where they were not counted. */
  countsOf(id: string): readonly RelationCount[] | undefined {
    return this.degrees.get(id);
  }

  label(id: string): string {
    const named = this.labels.get(id);
    if (named !== undefined) return named;
    const type = this.classes.get(id);
    return type === undefined ? localPart(id) : this.classLabel(type);
  }

  relationLabel(id: string): string {
    return this.relations.get(id) ?? this.labels.get(id) ?? localPart(id);
  }

  classOf(id: string): string {
    return this.classes.get(id) ?? NO_CLASS;
  }

  classLabel(id: string): string {
    return id === NO_CLASS ? "no class known" : (this.classLabels.get(id) ?? this.label(id));
  }

  description(id: string): string {
    return this.descriptions.get(id) ?? "";
  }
}

/** Return the part of an id that tells it from others of its kind. */
export function localPart(id: string): string {
  const plain = id.replace(/^<(.*)>$/, "$1");
  const part = /[^/#:]+\/?$/.exec(plain)?.[0];
  return part ?? plain;
}
