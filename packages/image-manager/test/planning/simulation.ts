import { importedImageId } from '@nodepool-builder/image-builder/internal';
import {
  type Build,
  type ManagedDiskImage,
  type ManagedProvider,
  type ManagerConfiguration,
  type ManagerState,
  type Observation,
  type Plan,
  plan,
  type Step,
  type Upload,
} from '@nodepool-builder/image-manager';
import { buildsToAdopt } from '../../src/planning/corrections.ts';
import { imageId, NOW, uploadId } from './situation.ts';

/** A step that has started. It may succeed or fail, in any order. */
type Job = Exclude<Step, { readonly kind: 'prune' }> & { readonly id: string };

/** Simulates a manager's state, the builders' disks and the time. */
export class Simulation {
  diskimages: readonly ManagedDiskImage[];
  providers: readonly ManagedProvider[];
  now: number = NOW;
  /** True while builders are reachable. */
  online = true;
  readonly requested: Set<string> = new Set();
  readonly #builds = new Map<string, Build>();
  readonly #uploads = new Map<string, Upload>();
  readonly #disk = new Set<string>();
  readonly #jobs = new Map<string, Job>();
  readonly #retryAt = new Map<string, number>();
  #absentSince = new Map<string, number>();
  #number = 0;

  constructor(diskimages: readonly ManagedDiskImage[], providers: readonly ManagedProvider[]) {
    this.diskimages = diskimages;
    this.providers = providers;
  }

  get configuration(): ManagerConfiguration {
    const timing = { retryDelay: 60, maxRetryDelay: 3600, orphanScanInterval: 600, absenceTimeout: 1800 };
    return { diskimages: this.diskimages, providers: this.providers, timing };
  }

  get state(): ManagerState {
    return { builds: this.#builds, uploads: this.#uploads, pauses: new Map() };
  }

  get jobs(): readonly string[] {
    return [...this.#jobs.keys()];
  }

  observationAt(now: number): Observation {
    const files = new Set(this.online ? this.#disk : []);
    const names = this.online ? this.diskimages.map(({ name }) => name) : [];
    return {
      now,
      offered: { builds: new Set(names), uploads: files, deletes: files },
      isComplete: true,
      inProgress: new Set(this.#jobs.keys()),
      absentSince: this.#absentSince,
      retryAt: this.#retryAt,
      requested: new Set(this.requested),
    };
  }

  /** A builder imports a build of Zuul that ended `ago` seconds ago. */
  importBuild(image: string, ago: number): void {
    this.#number += 1;
    const uuid = this.#number.toString(16).padStart(32, '0');
    this.#disk.add(importedImageId({ image, uuid, endTime: this.now - ago * 1000 }));
  }

  /** Adopts imported builds, updates absences, and plans. */
  plan(): Plan {
    const offered = this.online ? this.#disk : [];
    for (const build of buildsToAdopt(this.configuration, this.#builds, offered, this.now)) this.put(build);
    const ready = [...this.#builds.values()].filter(({ state }) => state === 'ready');
    const absent = ready.filter(({ id }) => !this.online || !this.#disk.has(id));
    this.#absentSince = new Map(absent.map(({ id }) => [id, this.#absentSince.get(id) ?? this.now]));
    return plan(this.configuration, this.state, this.observationAt(this.now));
  }

  /** Starts planned steps. */
  start(steps: readonly Step[]): void {
    for (const step of steps) {
      if (step.kind === 'prune') {
        for (const id of step.builds) this.#builds.delete(id);
        for (const id of step.uploads) this.#uploads.delete(id);
      } else {
        const id = this.#recordOf(step);
        this.#jobs.set(id, { ...step, id });
      }
    }
  }

  /** Ends a job. */
  end(id: string, well: boolean): void {
    const job = this.#jobs.get(id);
    if (job === undefined) return;
    this.#jobs.delete(id);
    const build = this.#builds.get(id);
    const upload = this.#uploads.get(id);
    if (build?.state === 'building') this.#endBuild(build, well);
    else if (upload?.state === 'uploading') this.#endUpload(upload, well);
    else if (!well) this.#retryAt.set(id, this.now + 60_000);
    else if (build !== undefined) this.#endDeletion(build);
    else if (upload?.state === 'deleting') this.#uploads.set(id, { ...upload, state: 'deleted' });
    else if (upload !== undefined) this.#uploads.set(id, { ...upload, leftovers: false });
  }

  /** The manager dies, and all jobs lose their tasks. */
  crash(): void {
    this.#jobs.clear();
    this.#retryAt.clear();
    this.#absentSince.clear();
  }

  /** The builders lose their disks. */
  loseFiles(): void {
    this.#disk.clear();
  }

  put(build: Build): void {
    this.#builds.set(build.id, build);
  }

  #recordOf(step: Exclude<Step, { readonly kind: 'prune' }>): string {
    const request = { reason: step.reason, requestedAt: this.now };
    this.#number += 1;
    if (step.kind === 'build') {
      const { diskimage } = step;
      const configuration = this.diskimages.find(({ name }) => name === diskimage)?.digest ?? '';
      const id = imageId(this.#number, diskimage);
      this.requested.delete(diskimage);
      this.#builds.set(id, { id, diskimage, state: 'building', configuration, withdrawn: false, ...request });
      return id;
    }
    if (step.kind === 'upload') {
      const { imageId: build, diskimage, provider, imageName } = step;
      const id = uploadId(this.#number);
      const target = { imageId: build, diskimage, provider, imageName };
      this.#uploads.set(id, { ...target, ...request, id, state: 'uploading', leftovers: false, seen: false });
      return id;
    }
    const { id } = step;
    this.#retryAt.delete(id);
    const build = this.#builds.get(id);
    const upload = this.#uploads.get(id);
    if (step.kind === 'delete-build' && build !== undefined)
      this.#builds.set(id, { ...build, state: 'deleting' });
    if (step.kind === 'delete-upload' && upload !== undefined) {
      this.#uploads.set(id, { ...upload, state: 'deleting' });
    }
    return id;
  }

  #endBuild(build: Build, well: boolean): void {
    const endedAt = this.now;
    if (well && this.online) {
      this.#disk.add(build.id);
      this.#builds.set(build.id, { ...build, state: 'ready', endedAt });
    } else this.#builds.set(build.id, { ...build, state: 'failed', endedAt, error: 'broken' });
  }

  #endUpload(upload: Upload, well: boolean): void {
    const endedAt = this.now;
    if (well && this.online && this.#disk.has(upload.imageId)) {
      this.#uploads.set(upload.id, { ...upload, state: 'ready', endedAt });
    } else {
      this.#uploads.set(upload.id, { ...upload, state: 'failed', endedAt, error: 'broken', leftovers: true });
    }
  }

  #endDeletion(build: Build): void {
    this.#disk.delete(build.id);
    this.#builds.set(build.id, { ...build, state: 'deleted' });
  }
}
