import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { makeStateDirectory, unlessMissing, writeDurably } from '@nodepool-builder/image-builder';
import { UNFINISHED, unlessAborted } from '@nodepool-builder/image-builder/module-kit';
import type { OnInstance } from './settings.ts';

/**
 * How far a build on an instance has come: it is launched; it runs, and so do the steps; it is cleaned, so that nobody
 * can log in for sure; it is clean; it is powered off; it is captured; all that is left to do is to end it.
 */
export type InstancePhase =
  | 'launching'
  | 'running'
  | 'cleaning'
  | 'cleaned'
  | 'stopped'
  | 'captured'
  | 'ending';

/** What is remembered of the instance of a build, in a file that its image-id names. */
export interface InstanceEntry {
  /** `providers[].name`. */
  readonly provider: string;
  readonly phase: InstancePhase;
  /** How many of the steps have ended well. */
  readonly stepsDone: number;
  readonly afterRestart: OnInstance['afterRestart'];
  /** Digest of how the image is made: a build does not go on with what was begun in another way. */
  readonly recipe: string;
  /** Of the machine, in base64, once it is known. */
  readonly hostKey?: string;
  /** Of an instance whose build failed, ISO 8601: until then it is left for people to look at. */
  readonly keptUntil?: string;
}

const ENTRY = '.json';
const KEY = '.key';
const FILES = [KEY + UNFINISHED, KEY, ENTRY + UNFINISHED, ENTRY];

/** Claims of this process, whichever ledger they came from, by path. */
const claims = new Map<string, Promise<void>>();

/**
 * What is remembered of the instances that builds of one `images-dir` run on: a file for each, written before the
 * launch and removed when the instance is gone. What is in no file is nobody's.
 */
export class InstanceLedger {
  readonly directory: string;

  /** @param site of the builds; its directory is created with the first record. */
  constructor(site: { recordDirectory(name: string): string }) {
    this.directory = site.recordDirectory('instances');
  }

  /**
   * Waits until nobody else in this process works with the instance of this image.
   *
   * @throws the signal's reason
   */
  async claim(imageId: string, signal: AbortSignal): Promise<InstanceClaim> {
    for (;;) {
      const claim = this.tryClaim(imageId);
      if (claim !== undefined) return claim;
      await unlessAborted(claims.get(this.#key(imageId)) ?? Promise.resolve(), signal);
    }
  }

  /** The claim to the instance of an image; undefined while somebody has it. */
  tryClaim(imageId: string): InstanceClaim | undefined {
    const key = this.#key(imageId);
    if (claims.has(key)) return undefined;
    const released = Promise.withResolvers<void>();
    claims.set(key, released.promise);
    return new InstanceClaim(this.directory, imageId, () => {
      claims.delete(key);
      released.resolve();
    });
  }

  /** The images that something is remembered of, were it a file that a crash has left half written. */
  async imageIds(): Promise<string[]> {
    const names = (await unlessMissing(readdir(this.directory))) ?? [];
    const ids = names.flatMap((name) => {
      const ending = FILES.find((candidate) => name.endsWith(candidate));
      return ending === undefined ? [] : [name.slice(0, -ending.length)];
    });
    return [...new Set(ids)];
  }

  #key(imageId: string): string {
    return join(this.directory, imageId);
  }
}

/** The right to work with the instance of one image, and with what is remembered of it. */
export class InstanceClaim {
  readonly imageId: string;
  /** Where the private key is that logs in, if it has to outlive this process. */
  readonly keyFile: string;
  /** Lets the next one have it. */
  readonly release: () => void;
  readonly #directory: string;
  readonly #path: string;

  constructor(directory: string, imageId: string, release: () => void) {
    this.imageId = imageId;
    this.#directory = directory;
    this.keyFile = join(directory, imageId + KEY);
    this.release = release;
    this.#path = join(directory, imageId + ENTRY);
  }

  /** Undefined if nothing is remembered, or nothing that can be understood. */
  async read(): Promise<InstanceEntry | undefined> {
    const text = await unlessMissing(readFile(this.#path, 'utf8'));
    try {
      return text === undefined ? undefined : (JSON.parse(text) as InstanceEntry);
    } catch {
      return undefined;
    }
  }

  /** Survives a loss of power from then on. */
  async write(entry: InstanceEntry): Promise<void> {
    await makeStateDirectory(this.#directory);
    await writeDurably(this.#path, `${JSON.stringify(entry, null, 2)}\n`);
  }

  /** Writes the key file, for nobody else to read. */
  async keepKey(privateKey: string): Promise<void> {
    await makeStateDirectory(this.#directory);
    await writeDurably(this.keyFile, privateKey);
  }

  /** Forgets all; the entry goes last. */
  async remove(): Promise<void> {
    for (const ending of FILES) await rm(join(this.#directory, this.imageId + ending), { force: true });
  }
}
