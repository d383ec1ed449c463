import { randomBytes } from 'node:crypto';
import type { Site, SiteView } from './site-view.ts';

/** An item whose changes are tracked. */
export interface Item<T> {
  /** Content of the item. If it is equal, nothing has changed. */
  readonly key: string;
  readonly value: T;
}

/** Items that changed since a version, and items that were removed. */
export interface Changes<T> {
  readonly version: string;
  readonly changed: ReadonlyMap<string, T>;
  /**
   * True if the reader has to read everything again, because its version is unknown here, or an item was added or
   * removed.
   */
  readonly isNew: boolean;
}

/** Numbers the changes of the site's items, so that each reader gets only those that it has not seen. */
export class Feed<T> {
  readonly #view: SiteView;
  readonly #itemsOf: (site: Site) => Iterable<readonly [id: string, item: Item<T>]>;
  /** Identifies this process. Versions of another process are not valid here. */
  readonly #epoch = randomBytes(6).toString('hex');
  #version = 0;
  /** Version of the last added or removed item. */
  #structure = 0;
  #items = new Map<string, Item<T> & { readonly version: number }>();
  #site: Site | undefined;

  /** @param itemsOf derives the items from a state of the site */
  constructor(view: SiteView, itemsOf: (site: Site) => Iterable<readonly [id: string, item: Item<T>]>) {
    this.#view = view;
    this.#itemsOf = itemsOf;
  }

  /** Ids of all items. */
  get ids(): Iterable<string> {
    return this.#items.keys();
  }

  /** The items of a state of the site, and their version. */
  update(site: Site): { readonly version: string; readonly items: ReadonlyMap<string, Item<T>> } {
    if (site !== this.#site) {
      this.#site = site;
      const next = this.#version + 1;
      const items = new Map<string, Item<T> & { readonly version: number }>();
      for (const [id, item] of this.#itemsOf(site)) {
        const before = this.#items.get(id);
        const isSame = before?.key === item.key;
        items.set(id, isSame ? before : { ...item, version: next });
        if (!isSame) this.#version = next;
        if (before === undefined) this.#structure = next;
      }
      if ([...this.#items.keys()].some((id) => !items.has(id))) this.#structure = this.#version = next;
      this.#items = items;
    }
    return { version: this.#name(this.#version), items: this.#items };
  }

  /** Calls the listener with the changes since a version, now and at each change, until the signal aborts. */
  follow(version: string, signal: AbortSignal, listener: (changes: Changes<T>) => void): void {
    let seen = version;
    void this.#view.watch((site) => {
      const { version: current } = this.update(site);
      if (current === seen) return;
      const since = this.#numberOf(seen);
      const changed = new Map<string, T>();
      for (const [id, item] of this.#items) if (item.version > since) changed.set(id, item.value);
      const isNew = since < this.#structure;
      seen = current;
      listener({ version: current, changed, isNew });
    }, signal);
  }

  #name(version: number): string {
    return `${this.#epoch}-${version}`;
  }

  /** Returns the number of a version; 0 for a version of another process. */
  #numberOf(version: string): number {
    const [epoch, number] = version.split('-');
    return epoch === this.#epoch ? Number(number) : 0;
  }
}
