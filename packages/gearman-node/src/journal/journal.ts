import { once } from 'node:events';
import { createReadStream } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, rename, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { decodeRecords, encodeAdded, encodeRemoved, type JournaledJob } from './journal-record.ts';

/** A journal may grow to twice what it was when it was last written anew, and by so many bytes. */
const SLACK = 1024 * 1024;

/** Mode of its files: payloads may hold secrets. */
const MODE = 0o600;

/** Bytes that are read or written at a time. */
const BLOCK = 1024 * 1024;

/**
 * Background jobs in a file that is appended to, so that they outlive the process, and the machine's power. What one
 * turn of the event loop adds, or what is added while the disk is busy, reaches the disk together.
 */
export class Journal {
  readonly #directory: string;
  readonly #claim: Server;
  readonly #logger: Logger | undefined;
  readonly #jobs = new Map<string, JournaledJob>();
  #file: FileHandle | undefined;
  #size = 0;
  #sizeWhenNew = 0;
  /** The records that are not written yet. */
  #pending: Buffer[] = [];
  /** The write under way, or the last one. */
  #current: Promise<void> = Promise.resolve();
  /** The write that follows it. */
  #next: Promise<void> | undefined;
  #isClosed = false;

  private constructor(directory: string, claim: Server, logger: Logger | undefined) {
    this.#directory = directory;
    this.#claim = claim;
    this.#logger = logger;
  }

  /**
   * Opens the journal of a directory, which is made if need be, and reads the jobs that it has.
   *
   * @throws GearmanError `journal-failed`, for instance because another server uses it
   */
  static async open(directory: string, logger?: Logger): Promise<Journal> {
    let journal: Journal | undefined;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const claim = await claimDirectory(directory);
      if (!claim) throw new Error('another job server uses it; stop that one, or name another directory');
      journal = new Journal(directory, claim, logger);
      await journal.#read();
      await journal.#rewrite();
      return journal;
    } catch (cause) {
      await journal?.close();
      throw failed(directory, cause);
    }
  }

  /** The jobs that are not over, the oldest first. */
  get jobs(): Iterable<JournaledJob> {
    return this.#jobs.values();
  }

  has(handle: string): boolean {
    return this.#jobs.has(handle);
  }

  /** Takes a job; {@link synced} tells when it is on the disk. */
  add(job: JournaledJob): void {
    this.#jobs.set(job.handle, job);
    this.#pending.push(encodeAdded(job));
  }

  /** A job is over. Does nothing if the journal does not have it. */
  remove(handle: string): void {
    if (this.#isClosed || !this.#jobs.delete(handle)) return;
    this.#pending.push(encodeRemoved(handle));
    this.synced().catch(() => {}); // it is logged, and the next write makes up for it
  }

  /**
   * Resolves when all that was added and removed so far is on the disk.
   *
   * @throws GearmanError `journal-failed`, for instance because the disk is full; `closed`
   */
  async synced(): Promise<void> {
    if (this.#isClosed) throw new GearmanError('closed', `the journal in ${this.#directory} was closed`);
    if (this.#pending.length > 0) this.#next ??= this.#write();
    await (this.#next ?? this.#current);
  }

  /** Writes what is left. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const synced = this.synced();
    this.#isClosed = true;
    await synced.catch(() => {}); // it is logged
    await this.#file?.close();
    await new Promise((resolve) => this.#claim.close(resolve));
  }

  async #write(): Promise<void> {
    await this.#current.catch(() => {}); // who waited for it was told
    this.#current = this.#next as Promise<void>;
    this.#next = undefined;
    try {
      if (!this.#file || this.#size > 2 * this.#sizeWhenNew + SLACK) await this.#rewrite();
      else await this.#append(this.#file);
    } catch (cause) {
      // What the file holds now is not known: the next write makes a new one.
      await this.#file?.close().catch(() => {});
      this.#file = undefined;
      const error = failed(this.#directory, cause);
      this.#logger?.error(error.message, { error });
      throw error;
    }
  }

  async #append(file: FileHandle): Promise<void> {
    const bytes = Buffer.concat(this.#pending);
    this.#pending = [];
    await file.appendFile(bytes);
    await file.datasync();
    this.#size += bytes.length;
  }

  /** Writes the jobs that there are into a new file, which then takes the place of the old one. */
  async #rewrite(): Promise<void> {
    this.#pending = [];
    const jobs = [...this.#jobs.values()];
    const file = await open(this.#path('.new'), 'w', MODE);
    try {
      await file.chmod(MODE); // a crash may have left it with another mode
      await file.writeFile(blocks(jobs));
      await file.sync();
      await rename(this.#path('.new'), this.#path());
      await syncDirectory(this.#directory);
    } catch (error) {
      await file.close();
      throw error;
    }
    await this.#file?.close();
    this.#file = file;
    this.#sizeWhenNew = (await file.stat()).size;
    this.#size = this.#sizeWhenNew;
  }

  async #read(): Promise<void> {
    const file = await open(this.#path(), 'a+', MODE);
    await file.chmod(MODE);
    const chunks: AsyncIterable<Buffer> = createReadStream('', { fd: file, start: 0, highWaterMark: BLOCK });
    for await (const record of decodeRecords(chunks)) {
      if ('added' in record) this.#jobs.set(record.added.handle, record.added);
      else if ('removed' in record) this.#jobs.delete(record.removed);
      else await this.#setAside();
    }
  }

  /** The journal is about to be written anew, without what cannot be read: that is for a person to look at. */
  async #setAside(): Promise<void> {
    await copyFile(this.#path(), this.#path('.damaged'));
    this.#logger?.warn(
      `the journal in ${this.#directory} ends with a record that is cut short or damaged, as a crash may leave it; ` +
        `what it was is in ${this.#path('.damaged')}`,
    );
  }

  #path(suffix = ''): string {
    return join(this.#directory, `jobs.journal${suffix}`);
  }
}

/**
 * Claims a directory for this process. The claim is a socket in Linux's abstract namespace, which goes with the
 * process by whichever death; elsewhere there is none, and no protection.
 *
 * @returns what to close to give the claim back; undefined if another process has it
 */
async function claimDirectory(directory: string): Promise<Server | undefined> {
  const { dev, ino } = await stat(directory);
  const claim = createServer().unref();
  if (process.platform !== 'linux') return claim;
  try {
    await once(claim.listen(`\0gearman-node-journal-${dev}-${ino}`), 'listening');
    return claim;
  } catch {
    return undefined;
  }
}

/** The jobs' records, some of them at a time. */
function* blocks(jobs: readonly JournaledJob[]): Generator<Buffer> {
  let records: Buffer[] = [];
  let size = 0;
  for (const job of jobs) {
    const record = encodeAdded(job);
    size += record.length;
    records.push(record);
    if (size >= BLOCK) {
      yield Buffer.concat(records);
      records = [];
      size = 0;
    }
  }
  yield Buffer.concat(records);
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function failed(directory: string, cause: unknown): GearmanError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new GearmanError('journal-failed', `the journal in ${directory} cannot be used: ${reason}`, {
    cause,
  });
}
