import type { Build, ManagerState, Upload } from './records.ts';
import type { Leadership, StateChange } from './store/state-store.ts';

/** The state during one leadership: what is changed is in the store before it counts here. */
export class LedState implements ManagerState {
  readonly builds: Map<string, Build>;
  readonly uploads: Map<string, Upload>;
  readonly #leadership: Leadership;
  /** Changes are written one after the other: a later one may rest on an earlier one. */
  #written: Promise<void> = Promise.resolve();

  constructor(read: ManagerState, leadership: Leadership) {
    this.builds = new Map(read.builds);
    this.uploads = new Map(read.uploads);
    this.#leadership = leadership;
  }

  /** @throws StoreError `not-leader` */
  nextNumber(): Promise<number> {
    return this.#leadership.nextNumber();
  }

  /** @throws StoreError; nothing has changed then */
  async change(change: StateChange): Promise<void> {
    const written = this.#written.then(() => this.#leadership.write(change));
    this.#written = written.catch(() => {});
    await written;
    for (const build of change.builds ?? []) this.builds.set(build.id, build);
    for (const upload of change.uploads ?? []) this.uploads.set(upload.id, upload);
    for (const id of change.prunedBuilds ?? []) this.builds.delete(id);
    for (const id of change.prunedUploads ?? []) this.uploads.delete(id);
  }

  /** Puts a build as it is now, with these fields changed. One that was pruned meanwhile stays away. */
  async updateBuild(id: string, fields: Partial<Build>): Promise<void> {
    const build = this.builds.get(id);
    if (build !== undefined) await this.change({ builds: [{ ...build, ...fields }] });
  }

  /** Puts an upload as it is now, with these fields changed. One that was pruned meanwhile stays away. */
  async updateUpload(id: string, fields: Partial<Upload>): Promise<void> {
    const upload = this.uploads.get(id);
    if (upload !== undefined) await this.change({ uploads: [{ ...upload, ...fields }] });
  }
}
