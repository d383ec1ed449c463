import { type FileHandle, open, readFile } from 'node:fs/promises';
import { STATE_FILE, unlessMissing } from '@nodepool-builder/image-builder/module-kit';

const BOOT_ID = '/proc/sys/kernel/random/boot_id';

/** Which object the blocks are parts of, as its server tells objects apart. */
export interface ObjectIdentity {
  /** Bytes. */
  readonly size: number;
  /** An entity tag or a date, as If-Range has it. */
  readonly validator: string;
}

/** What a journal begins with: all of it has to be as it was for the blocks to be worth something. */
interface Header extends ObjectIdentity {
  readonly version: 1;
  /** What was written but not synced survives the death of a process, not that of the system. */
  readonly bootId: string;
}

/** The list of the blocks that are on the disk, a line each, after a line that says of what. */
export class Journal {
  readonly #file: FileHandle;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  /** Begins a new one. */
  static async begin(path: string, identity: ObjectIdentity): Promise<Journal> {
    const file = await open(path, 'w', STATE_FILE);
    await file.write(`${JSON.stringify(await headerOf(identity))}\n`);
    return new Journal(file);
  }

  /** Goes on with the one that is there. */
  static async continue(path: string): Promise<Journal> {
    return new Journal(await open(path, 'a'));
  }

  /** The blocks of this object that are there; undefined if there is none of it, or none that can be trusted. */
  static async read(path: string, identity: ObjectIdentity): Promise<readonly number[] | undefined> {
    const text = await unlessMissing(readFile(path, 'utf8'));
    // What stands after the last line's end was cut short.
    const [header, ...lines] = (text ?? '').split('\n').slice(0, -1);
    if (header !== JSON.stringify(await headerOf(identity))) return undefined;
    const blocks = lines.map(Number);
    return blocks.every(Number.isSafeInteger) ? blocks : undefined;
  }

  /** Notes a block, which has been written. */
  async add(block: number): Promise<void> {
    await this.#file.write(`${block}\n`);
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}

async function headerOf({ size, validator }: ObjectIdentity): Promise<Header> {
  const bootId = (await readFile(BOOT_ID, 'utf8')).trim();
  return { version: 1, bootId, size, validator };
}
