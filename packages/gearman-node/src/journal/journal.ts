import { once } from 'node:events';
import { constants, createReadStream } from 'node:fs';
import { copyFile, type FileHandle, mkdir, open, rename, rm, stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { GearmanError } from '../errors.ts';
import type { Logger } from '../logger.ts';
import { decodeRecords, encodeAdded, encodeRemoved, type JournaledJob } from './journal-record.ts';

/** A journal is rewritten when it exceeds twice its size after the last rewrite by this many bytes. */
const SLACK = 1024 * 1024;

/** Mode of the files: payloads may contain secrets. */
const MODE = 0o600;

/** Size of reads and writes in bytes. */
const BLOCK = 1024 * 1024;

/**
 * An append-only file of background jobs, so that they survive a crash or a power failure. Jobs that are added in one
 * turn of the event loop, or while the disk is busy, are written together.
 */
export class Journal {
  readonly #directory: string;
  readonly #claim: Server;
  readonly #logger: Logger | undefined;
  readonly #jobs = new Map<string, JournaledJob>();
  #file: FileHandle | undefined;
  #size = 0;
  #sizeWhenNew = 0;
  /** Records to write. */
  #pending: Buffer[] = [];
  /** The current write, or the last one. */
  #current: Promise<void> = Promise.resolve();
  /** The write after the current one. */
  #next: Promise<void> | undefined;
  #isClosed = false;

  private constructor(directory: string, claim: Server, logger: Logger | undefined) {
    this.#directory = directory;
    this.#claim = claim;
    this.#logger = logger;
  }

  /**
   * Opens the journal in a directory, creates the directory if necessary, and reads the jobs.
   *
   * @throws GearmanError `journal-failed`, for instance because another server uses the directory
   */
  static async open(directory: string, logger?: Logger): Promise<Journal> {
    let journal: Journal | undefined;
    try {
      await mkdir(directory, { recursive: true, mode: 0o700 });
      const claim = await claimDirectory(directory);
      if (!claim) throw new Error('another job server uses it; stop that server, or use another directory');
      journal = new Journal(directory, claim, logger);
      await journal.#read();
      await journal.#rewrite();
      return journal;
    } catch (cause) {
      await journal?.close();
      throw failed(directory, cause);
    }
  }

  /** The unfinished jobs, the oldest first. */
  get jobs(): Iterable<JournaledJob> {
    return this.#jobs.values();
  }

  has(handle: string): boolean {
    return this.#jobs.has(handle);
  }

  /** Adds a job. It is on disk once {@link synced} has resolved. */
  add(job: JournaledJob): void {
    this.#jobs.set(job.handle, job);
    this.#pending.push(encodeAdded(job));
  }

  /** Removes a finished job. Does nothing if the journal does not contain it. */
  remove(handle: string): void {
    if (this.#isClosed || !this.#jobs.delete(handle)) return;
    this.#pending.push(encodeRemoved(handle));
    this.synced().catch(() => {}); // #write logs the error, and the next write rewrites the file
  }

  /**
   * Resolves when all changes so far are on disk.
   *
   * @throws GearmanError `journal-failed`, for instance because the disk is full; `closed`
   */
  async synced(): Promise<void> {
    if (this.#isClosed) throw new GearmanError('closed', `the journal in ${this.#directory} was closed`);
    if (this.#pending.length > 0) this.#next ??= this.#write();
    await (this.#next ?? this.#current);
  }

  /** Writes pending records and closes the file. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    const synced = this.synced();
    this.#isClosed = true;
    await synced.catch(() => {}); // #write logs the error
    await this.#file?.close();
    await new Promise((resolve) => this.#claim.close(resolve));
  }

  async #write(): Promise<void> {
    await this.#current.catch(() => {}); // reported to the callers that wait for it
    this.#current = this.#next as Promise<void>;
    this.#next = undefined;
    try {
      if (!this.#file || this.#size > 2 * this.#sizeWhenNew + SLACK) await this.#rewrite();
      else await this.#append(this.#file);
    } catch (cause) {
      // The contents of the file are now unknown, so the next write creates a new file.
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

  /** Writes the unfinished jobs to a new file, which then replaces the old one. */
  async #rewrite(): Promise<void> {
    this.#pending = [];
    const jobs = [...this.#jobs.values()];
    await rm(this.#path('.new'), { force: true }); // left by a crash, or put there by another user
    const file = await open(this.#path('.new'), 'wx', MODE);
    try {
      await file.chmod(MODE); // regardless of the umask
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
    // Another user's link would point to another file, and opening a FIFO would never return.
    const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW, O_NONBLOCK } = constants;
    const file = await open(this.#path(), O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, MODE);
    await file.chmod(MODE);
    const chunks: AsyncIterable<Buffer> = createReadStream('', { fd: file, start: 0, highWaterMark: BLOCK });
    for await (const record of decodeRecords(chunks)) {
      if ('added' in record) this.#jobs.set(record.added.handle, record.added);
      else if ('removed' in record) this.#jobs.delete(record.removed);
      else await this.#backUp();
    }
  }

  /** Copies a journal with a damaged record for the operator to inspect, because the rewrite drops that record. */
  async #backUp(): Promise<void> {
    await rm(this.#path('.damaged'), { force: true });
    await copyFile(this.#path(), this.#path('.damaged'), constants.COPYFILE_EXCL);
    this.#logger?.warn(
      `the journal in ${this.#directory} ends with a truncated or corrupt record, as after a crash; ` +
        `a copy of the file is in ${this.#path('.damaged')}`,
    );
  }

  #path(suffix = ''): string {
    return join(this.#directory, `jobs.journal${suffix}`);
  }
}

/**
 * Claims a directory for this process. The claim is a socket in Linux's abstract namespace, which the kernel removes
 * with the process. Other systems have no protection.
 *
 * @returns the claim, released by closing it; undefined if another process holds it
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

/** Encodes the jobs in blocks. */
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
