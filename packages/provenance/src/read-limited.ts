import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { errnoOf } from '@nodepool-builder/image-builder/internal';
import { ProvenanceError, type ProvenanceErrorCode } from './errors.ts';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it does not exist; create it, or correct the path',
  EACCES: 'this user may not read it; change its owner or its mode',
  EISDIR: 'it is a directory; name a file',
  ELOOP: 'it is a symbolic link; replace it with the file',
};

/** Settings of {@link readLimited}. */
interface ReadLimits {
  /** Codes of the errors. */
  readonly unreadable: ProvenanceErrorCode;
  readonly tooLarge: ProvenanceErrorCode;
  /** Name of the file's content in messages. */
  readonly thing: string;
  /** Maximum size in bytes. */
  readonly limit: number;
  /** True if the file may be reached through a symbolic link. Default true. */
  readonly followLinks?: boolean;
  /** Permissions that the file must not have. Default: none. */
  readonly forbiddenMode?: number;
}

/** Reads a regular file of limited size. It never waits for a pipe or a device. @throws ProvenanceError */
export async function readLimited(path: string, limits: ReadLimits): Promise<Buffer> {
  const { thing, limit, unreadable, tooLarge, followLinks = true, forbiddenMode = 0 } = limits;
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (followLinks ? 0 : constants.O_NOFOLLOW);
  const readError = (reason: string, cause?: unknown): ProvenanceError =>
    new ProvenanceError(unreadable, `${thing} "${path}" cannot be used: ${reason}`, { cause });
  const fail = (error: unknown): never => {
    const code = errnoOf(error);
    throw code === undefined ? error : readError(REASONS[code] ?? `reading it failed (${code})`, error);
  };
  const handle = await open(path, flags).catch(fail);
  try {
    const state = await handle.stat();
    if (!state.isFile()) throw readError('it is not a file; name a file');
    if ((state.mode & forbiddenMode) !== 0) {
      throw readError('other users can access it; run "chmod o= FILE" with its path');
    }
    let buffer = Buffer.alloc(Math.min(state.size, limit) + 1);
    let length = 0;
    while (length <= limit) {
      // Grows for a growing file, and for a file below /proc, which has no size.
      if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(2 * length, limit) + 1);
      const { bytesRead } = await handle.read(buffer, length, buffer.length - length).catch(fail);
      if (bytesRead === 0) return buffer.subarray(0, length);
      length += bytesRead;
    }
    throw new ProvenanceError(tooLarge, `${thing} "${path}" is larger than ${limit} bytes`);
  } finally {
    await handle.close();
  }
}
