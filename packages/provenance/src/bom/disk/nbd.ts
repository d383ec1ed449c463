import { mkdtemp, rm } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { ImageFormat } from '@nodepool-builder/image-builder';
import {
  checkDisk,
  errnoOf,
  formatRow,
  runCommand,
  unlessAborted,
} from '@nodepool-builder/image-builder/module-kit';
import { type ByteSource, checkRange, UnreadableImage } from '../byte-source.ts';

// https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md

const FIXED_NEWSTYLE = 1;
const OPTION_GO = 7;
const REPLY_ACK = 1;
const REPLY_INFO = 3;
const INFO_EXPORT = 0;
const COMMAND_READ = 0;
const REQUEST_MAGIC = 0x25609513;
const REPLY_MAGIC = 0x67446698;

/** Most bytes of one request: qemu-nbd answers up to 32 MiB. */
const LARGEST_REQUEST = 4 * 2 ** 20;

/** Milliseconds until the next attempt to reach qemu-nbd, which has just been started. */
const CONNECT_INTERVAL = 20;

/** Milliseconds that qemu-nbd has for its end, once its only client is gone. */
const GRACE_PERIOD = 1_000;

/**
 * Runs work with the disk in an image of any format that QEMU reads: qemu-nbd serves it on a Unix socket, to this
 * process alone and only for reading. That needs no copy, no device and no right of root.
 *
 * @throws UnreadableImage; the signal's reason
 */
export async function withDisk<T>(
  file: { readonly format: ImageFormat; readonly path: string },
  signal: AbortSignal,
  work: (disk: ByteSource) => Promise<T>,
): Promise<T> {
  // qemu-nbd opens other files that a header names.
  await checkDisk(file);
  const { qemuDriver } = formatRow(file.format);
  if (qemuDriver === undefined) throw new UnreadableImage('QEMU does not read its format');
  const directory = await mkdtemp(join(tmpdir(), 'nbd-'));
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  try {
    const socket = join(directory, 's');
    const args = ['--read-only', `--format=${qemuDriver}`, `--socket=${socket}`, file.path];
    const server = runCommand('qemu-nbd', args, {
      cwd: dirname(file.path),
      signal: either,
      gracePeriod: GRACE_PERIOD,
    });
    const ended = server.then(({ decisiveLines }): never => {
      throw new UnreadableImage(`qemu-nbd failed: ${decisiveLines.join(' / ') || 'without a reason'}`);
    });
    try {
      return await Promise.race([ended, useDisk(socket, either, work)]);
    } finally {
      stop.abort();
      await ended.catch(() => {});
    }
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function useDisk<T>(
  path: string,
  signal: AbortSignal,
  work: (disk: ByteSource) => Promise<T>,
): Promise<T> {
  const socket = await reach(path, signal);
  try {
    return await unlessAborted(work(await NbdDisk.open(socket)), signal);
  } finally {
    socket.destroy();
  }
}

async function reach(path: string, signal: AbortSignal): Promise<Socket> {
  for (;;) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const socket = connect(path, resolve).on('error', reject);
    try {
      await unlessAborted(promise, signal);
      return socket;
    } catch (error) {
      socket.destroy();
      if (!['ENOENT', 'ECONNREFUSED'].includes(errnoOf(error) ?? '')) throw error;
    }
    await delay(CONNECT_INTERVAL, undefined, { signal });
  }
}

/** Client of an NBD server. One request is under way at a time. */
class NbdDisk implements ByteSource {
  readonly size: number;
  readonly #socket: Socket;
  readonly #replies: Replies;
  #last: Promise<unknown> = Promise.resolve();

  static async open(socket: Socket): Promise<NbdDisk> {
    const replies = new Replies(socket);
    const greeting = await replies.take(18);
    if (greeting.toString('latin1', 0, 16) !== 'NBDMAGICIHAVEOPT') throw unexpected();
    const flags = greeting.readUInt16BE(16) & FIXED_NEWSTYLE;
    // The default export has an empty name; it asks for no further information.
    const request = Buffer.alloc(4 + 16 + 6);
    request.writeUInt32BE(flags, 0);
    request.write('IHAVEOPT', 4, 'latin1');
    request.writeUInt32BE(OPTION_GO, 12);
    request.writeUInt32BE(6, 16);
    socket.write(request);
    let size: number | undefined;
    for (;;) {
      const reply = await replies.take(20);
      const data = await replies.take(Math.min(reply.readUInt32BE(16), LARGEST_REQUEST));
      const type = reply.readUInt32BE(12);
      if (type === REPLY_ACK && size !== undefined) return new NbdDisk(socket, replies, size);
      if (type !== REPLY_INFO) throw unexpected();
      if (data.readUInt16BE(0) === INFO_EXPORT) size = Number(data.readBigUInt64BE(2));
    }
  }

  private constructor(socket: Socket, replies: Replies, size: number) {
    this.#replies = replies;
    this.#socket = socket;
    this.size = size;
  }

  async read(position: number, length: number): Promise<Buffer> {
    checkRange(this, position, length);
    const parts: Buffer[] = [];
    for (let read = 0; read < length; read += LARGEST_REQUEST) {
      parts.push(await this.#request(position + read, Math.min(LARGEST_REQUEST, length - read)));
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }

  async #request(position: number, length: number): Promise<Buffer> {
    const answer = this.#last.then(async () => {
      this.#socket.write(readRequest(position, length));
      const reply = await this.#replies.take(16);
      if (reply.readUInt32BE(0) !== REPLY_MAGIC) throw unexpected();
      if (reply.readUInt32BE(4) !== 0)
        throw new UnreadableImage('it is damaged: QEMU cannot read a part of it');
      return await this.#replies.take(length);
    });
    this.#last = answer.catch(() => {});
    return await answer;
  }
}

function readRequest(position: number, length: number): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeUInt32BE(REQUEST_MAGIC, 0);
  bytes.writeUInt16BE(COMMAND_READ, 6);
  bytes.writeBigUInt64BE(BigInt(position), 16);
  bytes.writeUInt32BE(length, 24);
  return bytes;
}

/** Bytes that arrive from the server. At most one call waits for some of them. */
class Replies {
  #chunks: Buffer[] = [];
  #length = 0;
  #isClosed = false;
  #onChange: (() => void) | undefined;

  constructor(socket: Socket) {
    socket.on('data', (chunk: Buffer) => {
      this.#chunks.push(chunk);
      this.#length += chunk.length;
      this.#onChange?.();
    });
    for (const event of ['end', 'close', 'error']) {
      socket.on(event, () => {
        this.#isClosed = true;
        this.#onChange?.();
      });
    }
  }

  /** Exactly so many bytes. @throws UnreadableImage if the connection ends before */
  async take(length: number): Promise<Buffer> {
    while (this.#length < length) {
      if (this.#isClosed) throw new UnreadableImage('qemu-nbd closed the connection');
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#onChange = resolve;
      await promise;
    }
    const all = Buffer.concat(this.#chunks);
    this.#chunks = [all.subarray(length)];
    this.#length = all.length - length;
    return all.subarray(0, length);
  }
}

function unexpected(): UnreadableImage {
  return new UnreadableImage('qemu-nbd sent an unexpected reply; upgrade it');
}
