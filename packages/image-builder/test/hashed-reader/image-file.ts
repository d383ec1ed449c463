import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';

/** Size of a chunk in bytes. */
export const PIECE: number = 512 * 1024;

/** Size in bytes from which threads hash a file. */
export const LARGE: number = 16 * 2 ** 20;

/** Creates a file of random bytes. */
export interface RandomFile {
  readonly path: string;
  readonly content: Buffer;
}

/** Writes a file that is removed after the test. */
export async function randomFile(t: TestContext, size: number): Promise<RandomFile> {
  const path = join(await temporaryDirectory(t), 'image.raw');
  const content = randomBytes(size);
  await writeFile(path, content);
  return { path, content };
}

/** Returns the digest that coreutils computes. */
export function coreutilsDigest(name: string, path: string): string | undefined {
  return execFileSync(`${name}sum`, [path], { encoding: 'utf8' }).split(' ')[0];
}

/** Concatenates chunks. Each is copied after a turn of the event loop in which its memory could have been reused. */
export async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const piece of pieces) {
    await new Promise((resolve) => void setImmediate(resolve));
    copies.push(Buffer.from(piece));
  }
  return Buffer.concat(copies);
}
