import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';

/** Size in bytes of the SHA-256 at the end of a sealed file. */
const SEAL = 32;

/** Writes random bytes that end with their own digest, so that a reader recognizes a complete file. */
export async function writeSealedFile(path: string, size: number): Promise<void> {
  const content = randomBytes(size - SEAL);
  await writeFile(path, Buffer.concat([content, digest(content)]));
}

/** Returns whether a file is complete. */
export async function isSealed(path: string): Promise<boolean> {
  const bytes = await readFile(path);
  return bytes.length > SEAL && digest(bytes.subarray(0, -SEAL)).equals(bytes.subarray(bytes.length - SEAL));
}

function digest(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
