// What sigma and graphology use of the package `events`, in a tenth of its size.

type Listener = (...values: unknown[]) => void;

export class EventEmitter {
  private listeners = new Map<string, Listener[]>();

  on(event: string, listener: Listener): this {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), listener]);
    return this;
  }

  removeListener(event: string, listener: Listener): this {
    const kept = (this.listeners.get(event) ?? []).filter((each) => each !== listener);
    this.listeners.set(event, kept);
    return this;
  }

  removeAllListeners(event?: string): this {
    if (event === undefined) this.listeners.clear();
    else this.listeners.delete(event);
    return this;
  }

  /** Call the listeners of an event in the order they were added; return whether there are any. */
  emit(event: string, ...values: unknown[]): boolean {
    const found = this.listeners.get(event) ?? [];
    for (const listener of found) listener.apply(this, values);
    return found.length > 0;
  }
}
