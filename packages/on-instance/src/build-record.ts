import type { InstanceClaim, InstanceEntry } from './ledger.ts';

/** What is remembered of a build while it goes on. */
export class BuildRecord {
  readonly claim: InstanceClaim;
  #entry: InstanceEntry;

  constructor(claim: InstanceClaim, entry: InstanceEntry) {
    this.claim = claim;
    this.#entry = entry;
  }

  get entry(): InstanceEntry {
    return this.#entry;
  }

  /** Remembers what has changed, before anything else is done. */
  async update(change: Partial<InstanceEntry>): Promise<void> {
    this.#entry = { ...this.#entry, ...change };
    await this.claim.write(this.#entry);
  }
}
