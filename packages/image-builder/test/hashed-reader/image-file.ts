import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { temporaryDirectory } from '../../../../test/fixtures/temporary-directory.ts';

/** Bytes that are read at a time. */
export const PIECE: number = 512 * 1024;

/** The least bytes for which threads digest. */
export const LARGE: number = 16 * 2 ** 20;

/** A file of random bytes, and what they are. */
export interface RandomFile {
  readonly path: string;
  readonly content: Buffer;
}

/** Makes a file that goes away with the test. */
export async function randomFile(t: TestContext, size: number): Promise<RandomFile> {
  const path = join(await temporaryDirectory(t), 'image.raw');
  const content = randomBytes(size);
  await writeFile(path, content);
  return { path, content };
}

/** The digest as coreutils has it. */
export function coreutilsDigest(name: string, path: string): string | undefined {
  return execFileSync(`${name}sum`, [path], { encoding: 'utf8' }).split(' ')[0];
}

/** All of the pieces, each copied only after the event loop had a turn in which its memory might have been filled anew. */
export async function collect(pieces: AsyncIterable<Buffer>): Promise<Buffer> {
  const copies: Buffer[] = [];
  for await (const piece of pieces) {
    await new Promise((resolve) => void setImmediate(resolve));
    copies.push(Buffer.from(piece));
  }
  return Buffer.concat(copies);
}
