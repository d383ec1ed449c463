import { access, constants, open, stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { errorMessage } from '../errors.ts';
import { formatBytes } from '../format-bytes.ts';
import { lockHolder } from '../repository/directory-lock.ts';
import { Layout } from '../repository/layout.ts';
import { errnoOf, unlessMissing } from '../system-error.ts';
import type { CheckResult } from './check-result.ts';

/** Flag of open(2) for a file without a name, which does not change the directory. */
const O_TMPFILE = 0o20000000 | constants.O_DIRECTORY;

/** Error codes of a file system without unnamed files. */
const NO_TMPFILE: ReadonlySet<string | undefined> = new Set(['EOPNOTSUPP', 'EISDIR', 'EINVAL', 'ENOENT']);

/** File systems that lack hard links and sparse files, by the magic number of statfs(2). */
const LIMITED_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x4d44, 'FAT'],
  [0x2011bab0, 'exFAT'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x517b, 'SMB'],
]);

/** Size of the hole in the test for sparse files, in bytes. */
const HOLE = 1024 * 1024;

/** Checks that a directory exists, that this user may write to it, and what its file system supports. */
export async function* checkDirectory(name: string, path: string): AsyncGenerator<CheckResult> {
  const subject = `${name} ${path}`;
  const error = await accessError(path);
  if (error !== undefined) {
    yield { subject, status: 'problem', ...error };
    return;
  }
  yield { subject, status: 'ok', message: 'exists, and this user may write to it' };
  yield await checkFileSystem(`file system of ${name}`, path);
}

async function accessError(
  path: string,
): Promise<Required<Pick<CheckResult, 'message' | 'remedy'>> | undefined> {
  try {
    if (!(await stat(path)).isDirectory()) {
      return { message: 'is not a directory', remedy: 'name a directory' };
    }
    await access(path, constants.R_OK | constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const user = `user ${process.geteuid?.() ?? ''}`.trim();
    if (errnoOf(error) === 'ENOENT') {
      return { message: 'does not exist', remedy: `create it, owned by the user that runs the daemon` };
    }
    const message = errnoOf(error) === 'EROFS' ? 'is mounted read-only' : `is not writable for ${user}`;
    const remedy = 'grant the user that runs the daemon write access there, or run this command as that user';
    return { message, remedy };
  }
}

async function checkFileSystem(subject: string, path: string): Promise<CheckResult> {
  const limited = LIMITED_FILE_SYSTEMS.get((await statfs(path)).type);
  const remedy = 'use a file system of Linux, such as ext4 or XFS';
  if (limited !== undefined) {
    return {
      subject,
      status: 'problem',
      message: `is ${limited}, without hard links or sparse files`,
      remedy,
    };
  }
  try {
    const file = await open(path, O_TMPFILE | constants.O_RDWR, 0o600);
    try {
      await file.truncate(HOLE);
      await file.write('x', HOLE - 1);
      const isSparse = (await file.stat()).blocks * 512 < HOLE;
      if (!isSparse)
        return { subject, status: 'warning', message: 'stores the holes of sparse files', remedy };
    } finally {
      await file.close();
    }
    return { subject, status: 'ok', message: 'can be written, and keeps files sparse' };
  } catch (error) {
    const code = errnoOf(error);
    if (NO_TMPFILE.has(code)) {
      return {
        subject,
        status: 'ok',
        message: 'is writable; sparse files cannot be tested without changing it',
      };
    }
    const why = errorMessage(error);
    const isFull = code === 'ENOSPC' || code === 'EDQUOT';
    const fix = isFull ? 'free space there' : 'check the disk and the mount';
    return { subject, status: 'problem', message: `cannot be written: ${why}`, remedy: fix };
  }
}

/** Checks `images-dir`: that it is writable, that images can be renamed into it, and who uses it. */
export async function* checkImagesDirectory(path: string, signal: AbortSignal): AsyncGenerator<CheckResult> {
  for await (const result of checkDirectory('images-dir', path)) {
    yield result;
    if (result.status === 'problem') return;
  }
  const layout = new Layout(path);
  const staging = await unlessMissing(stat(layout.staging));
  if (staging !== undefined && staging.dev !== (await stat(path)).dev) {
    yield {
      subject: `staging directory ${layout.staging}`,
      status: 'problem',
      message: 'is on another file system than images-dir, so that images cannot be renamed',
      remedy: 'mount nothing below images-dir, or mount images-dir itself',
    };
  } else if (staging !== undefined) {
    yield { subject: 'staging directory', status: 'ok', message: 'is on the file system of images-dir' };
  }
  const subject = 'lock of images-dir';
  const holder = await lockHolder(layout, signal);
  const message = holder === undefined ? 'no builder runs here' : `a builder runs here: ${holder}`;
  yield { subject, status: 'ok', message };
}

/** Free space in bytes below which a directory counts as full, if nothing else is known. */
const SCARCE = 2 ** 30;

/**
 * Checks the free space of a directory.
 *
 * @param name `images-dir`
 * @param needed minimum number of bytes; with less, work fails
 * @param what user of the space: `the largest image`
 */
export async function checkFreeSpace(
  name: string,
  path: string,
  needed: number | undefined,
  what: string,
): Promise<CheckResult> {
  const subject = `free space in ${name}`;
  const place = await existingParent(path);
  const { bavail, bsize, files, ffree } = await statfs(place);
  const free = bavail * bsize;
  const has = `${formatBytes(free)} are free`;
  const remedy = 'delete what is not needed there, or make the file system larger';
  const result = { area: 'disk', subject } as const;
  if (files > 0 && ffree === 0) {
    return { ...result, status: 'problem', message: 'the file system has no free inode', remedy };
  }
  if (needed === undefined) {
    if (free < SCARCE) return { ...result, status: 'warning', message: `only ${has}`, remedy };
    return { ...result, status: 'ok', message: has };
  }
  const compared = `${has}; ${what} ${what.endsWith('s') ? 'have' : 'has'} ${formatBytes(needed)}`;
  if (free < needed) return { ...result, status: 'problem', message: compared, remedy };
  if (free < 2 * needed) return { ...result, status: 'warning', message: compared, remedy };
  return { ...result, status: 'ok', message: compared };
}

/** Returns the path, or the nearest existing directory above it, because a daemon creates the rest. */
async function existingParent(path: string): Promise<string> {
  const found = await unlessMissing(stat(path));
  return found === undefined && path !== '/' ? await existingParent(join(path, '..')) : path;
}
