import type { FileHandle } from 'node:fs/promises';
import { type Checksums, ImageError } from '@nodepool-builder/image-builder';
import { type Digester, type Slot, SlotRing, writeSparse } from '@nodepool-builder/image-builder/module-kit';
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
  readonly #ring: SlotRing;
  #slot: Slot | undefined;
  #filled = 0;
  #size = 0;
  readonly #underWay = new Set<Promise<void>>();
  #fault: Error | undefined;

  constructor(options: UnpackedFileOptions) {
    this.#options = options;
    this.#ring = new SlotRing(options.digester.memory);
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
      this.#slot ??= await this.#ring.take();
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
    const work = this.#store(slot, this.#filled, this.#size).then(
      () => this.#ring.give(slot),
      (error: unknown) => {
        this.#fault ??= error instanceof Error ? error : new Error(String(error));
        this.#ring.give(slot);
      },
    );
    this.#underWay.add(work);
    void work.then(() => this.#underWay.delete(work));
    this.#size += this.#filled;
    this.#slot = undefined;
    this.#filled = 0;
  }

  async #store({ begin, bytes }: Slot, length: number, position: number): Promise<void> {
    const { file, digester, space } = this.#options;
    const write = async (): Promise<void> => {
      if (file !== undefined) await space.take(await writeSparse(file, bytes.subarray(0, length), position));
    };
    // The slot may be filled anew only when both have ended, also where one has failed.
    const [, written] = await Promise.allSettled([digester.update({ begin, end: begin + length }), write()]);
    if (written.status === 'rejected') throw written.reason;
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
