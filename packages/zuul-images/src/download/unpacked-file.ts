import type { FileHandle } from 'node:fs/promises';
import { type Checksums, ImageError } from '@nodepool-builder/image-builder';
import { type Digester, type Slot, writeSparse } from '@nodepool-builder/image-builder/module-kit';
import type { DiskSpaceGuard } from './disk-space-guard.ts';

/** Where unpacked bytes go, and within what bounds. */
export interface UnpackedFileOptions {
  /** Absent where the bytes are in their file already and are only to be digested. */
  readonly file: FileHandle | undefined;
  readonly digester: Digester;
  /** The artifact in messages. */
  readonly name: string;
  /** Most bytes. */
  readonly limit: number;
  readonly space: DiskSpaceGuard;
}

/** What was unpacked. */
export interface Unpacked {
  /** Bytes, holes included. */
  readonly size: number;
  readonly checksums: Checksums;
}

/** A file that is written and digested in one pass, out of the digester's memory, which bounds what is under way. */
export class UnpackedFile {
  readonly #options: UnpackedFileOptions;
  #slot: Slot | undefined;
  #filled = 0;
  #size = 0;
  readonly #underWay = new Set<Promise<void>>();
  #fault: Error | undefined;

  constructor(options: UnpackedFileOptions) {
    this.#options = options;
  }

  /**
   * Takes a copy of the next bytes.
   *
   * @throws ImageError `artifact-too-large`, `disk-full`
   */
  async write(bytes: Buffer): Promise<void> {
    const { name, limit } = this.#options;
    if (this.#size + this.#filled + bytes.length > limit) throw tooLarge(name, limit);
    for (let taken = 0; taken < bytes.length; ) {
      this.#slot ??= await this.#options.digester.slot();
      const copied = bytes.copy(this.#slot.bytes, this.#filled, taken);
      taken += copied;
      this.#filled += copied;
      if (this.#filled === this.#slot.bytes.length) this.#flush();
    }
    this.#throwFault();
  }

  /** Waits until all is written and digested. */
  async finish(): Promise<Unpacked> {
    this.#flush();
    await this.settle();
    this.#throwFault();
    await this.#options.file?.truncate(this.#size); // the end may be a hole
    const { md5, sha256 } = await this.#options.digester.digest();
    return { size: this.#size, checksums: { md5, sha256 } };
  }

  /** Waits until nothing is under way any more, so that file and digester can be closed. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay);
  }

  #flush(): void {
    const slot = this.#slot;
    if (slot === undefined) return;
    const work = this.#store(slot, this.#filled, this.#size).catch((error: unknown) => {
      this.#fault ??= error instanceof Error ? error : new Error(String(error));
    });
    slot.done = work;
    this.#underWay.add(work);
    void work.then(() => this.#underWay.delete(work));
    this.#size += this.#filled;
    this.#slot = undefined;
    this.#filled = 0;
  }

  async #store(slot: Slot, length: number, position: number): Promise<void> {
    const { file, digester, space } = this.#options;
    const digested = digester.update(slot, length);
    try {
      if (file !== undefined)
        await space.take(await writeSparse(file, slot.bytes.subarray(0, length), position));
    } finally {
      await digested; // only then may the slot be filled again
    }
  }

  #throwFault(): void {
    if (this.#fault !== undefined) throw this.#fault;
  }
}

/** What is thrown for an artifact that has more bytes than it may. */
export function tooLarge(name: string, limit: number): ImageError {
  return new ImageError(
    'artifact-too-large',
    `${name} has more than ${limit} bytes when it is unpacked; if it is meant to, correct its announced size or raise the limit`,
  );
}
