import type { ImageDocument } from './documents.ts';
import { eventsOf, type ManagerEvent } from './manager-event.ts';
import type { Build, ManagerState, Pause, Upload } from './records.ts';
import type { ManagerLeadership, StateChange } from './store/leadership.ts';

/** Computes a change from the records at the time of the write. */
type Derivation = (current: CurrentRecords) => StateChange;

/** The records, including the earlier changes of the same write. */
interface CurrentRecords {
  readonly build: (id: string) => Build | undefined;
  readonly upload: (id: string) => Upload | undefined;
}

/** Changes that are written together. */
interface Batch {
  readonly changes: Derivation[];
  readonly written: Promise<void>;
}

/**
 * The state while this manager is the leader. A change is in the store before it is visible here. The next write
 * combines all changes that arrive during a write.
 */
export class LeaderState implements ManagerState {
  readonly builds: Map<string, Build>;
  readonly uploads: Map<string, Upload>;
  readonly pauses: Map<string, Pause>;
  readonly #leadership: Pick<ManagerLeadership, 'write'>;
  readonly #onEvent: ((event: ManagerEvent) => void) | undefined;
  /** The next batch, which waits for the end of the current write. */
  #next: Batch | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** @param onEvent called once a record with an event is written */
  constructor(
    read: ManagerState,
    leadership: Pick<ManagerLeadership, 'write'>,
    onEvent?: (event: ManagerEvent) => void,
  ) {
    this.builds = new Map(read.builds);
    this.uploads = new Map(read.uploads);
    this.pauses = new Map(read.pauses);
    this.#leadership = leadership;
    this.#onEvent = onEvent;
  }

  /** @throws StoreError; nothing has changed */
  change(change: StateChange): Promise<void> {
    return this.#enqueue(() => change);
  }

  /**
   * Changes fields of a build, and adds its documents to the store in the same write. Does nothing for a build that was
   * pruned in the meantime.
   */
  updateBuild(id: string, fields: Partial<Build>, documents: readonly ImageDocument[] = []): Promise<void> {
    return this.#enqueue(({ build }) => {
      const builds = updated(build(id), fields);
      return { builds, documents: builds.length === 0 ? [] : documents };
    });
  }

  /**
   * Adds a checksum to a build without one.
   *
   * @returns the checksum on record; undefined if the build was pruned
   */
  async recordChecksum(id: string, checksum: string): Promise<string | undefined> {
    await this.#enqueue(({ build: find }) => {
      const build = find(id);
      return build?.checksum === undefined ? { builds: updated(build, { checksum }) } : {};
    });
    return this.builds.get(id)?.checksum;
  }

  /** Changes fields of an upload, like {@link updateBuild}. */
  updateUpload(id: string, fields: Partial<Upload>, documents: readonly ImageDocument[] = []): Promise<void> {
    return this.#enqueue(({ upload }) => {
      const uploads = updated(upload(id), fields);
      return { uploads, documents: uploads.length === 0 ? [] : documents };
    });
  }

  #enqueue(derive: Derivation): Promise<void> {
    if (this.#next === undefined) {
      const changes: Derivation[] = [];
      const written = this.#writing.then(() => this.#write(changes));
      this.#writing = written.catch(() => undefined);
      this.#next = { changes, written };
    }
    this.#next.changes.push(derive);
    return this.#next.written;
  }

  async #write(changes: readonly Derivation[]): Promise<void> {
    this.#next = undefined;
    const change = this.#combine(changes);
    await this.#leadership.write(change);
    const events = this.#onEvent === undefined ? [] : [...eventsOf(change, this)];
    this.#apply(change);
    for (const event of events) this.#onEvent?.(event);
  }

  #combine(derivations: readonly Derivation[]): StateChange {
    const builds = new Map<string, Build>();
    const uploads = new Map<string, Upload>();
    const current: CurrentRecords = {
      build: (id) => builds.get(id) ?? this.builds.get(id),
      upload: (id) => uploads.get(id) ?? this.uploads.get(id),
    };
    const changes = derivations.map((derive) => {
      const change = derive(current);
      for (const build of change.builds ?? []) builds.set(build.id, build);
      for (const upload of change.uploads ?? []) uploads.set(upload.id, upload);
      return change;
    });
    return {
      builds: [...builds.values()],
      uploads: [...uploads.values()],
      pauses: changes.flatMap(({ pauses = [] }) => pauses),
      endedPauses: changes.flatMap(({ endedPauses = [] }) => endedPauses),
      documents: changes.flatMap(({ documents = [] }) => documents),
      prunedBuilds: changes.flatMap(({ prunedBuilds = [] }) => prunedBuilds),
      prunedUploads: changes.flatMap(({ prunedUploads = [] }) => prunedUploads),
      handledRequests: changes.flatMap(({ handledRequests = [] }) => handledRequests),
    };
  }

  #apply(change: StateChange): void {
    for (const build of change.builds ?? []) this.builds.set(build.id, build);
    for (const upload of change.uploads ?? []) this.uploads.set(upload.id, upload);
    for (const pause of change.pauses ?? []) this.pauses.set(pause.id, pause);
    for (const id of change.endedPauses ?? []) this.pauses.delete(id);
    for (const id of change.prunedBuilds ?? []) this.builds.delete(id);
    for (const id of change.prunedUploads ?? []) this.uploads.delete(id);
  }
}

function updated<T>(record: T | undefined, fields: Partial<T>): readonly T[] {
  return record === undefined ? [] : [{ ...record, ...fields }];
}
