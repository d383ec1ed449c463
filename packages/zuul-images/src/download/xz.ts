import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Writable } from 'node:stream';
import { ImageError } from '@nodepool-builder/image-builder';
import { errnoOf, inheritedEnvironment, startError } from '@nodepool-builder/image-builder/module-kit';

/** What xz may take of memory: `xz -9` needs 65 MiB to be unpacked, in several threads several times as much. */
const ARGUMENTS = ['--decompress', '--stdout', '--quiet', '--memlimit-decompress=512MiB'];

/** Unpacks with the program `xz`, which ends with its input. */
export async function* unpackByXz(
  packed: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const child = spawn('xz', ARGUMENTS, {
    env: inheritedEnvironment(),
    stdio: ['pipe', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  let complaint = '';
  child.stderr.on('data', (chunk: Buffer) => (complaint += String(chunk)));
  const ended = once(child, 'close') as Promise<[number | null, string | null]>;
  ended.catch(() => {}); // told below, if anybody still wants to know
  const feeding = feed(child.stdin, packed);
  try {
    yield* child.stdout as AsyncIterable<Buffer>;
    const [code, killedBy] = await ended.catch((error: unknown) => {
      signal.throwIfAborted();
      throw notStarted(error);
    });
    const fault = await feeding;
    if (fault !== undefined) throw fault;
    if (code !== 0) throw new Error(complaint.trim() || `xz ended with ${killedBy ?? `exit code ${code}`}`);
  } finally {
    child.kill('SIGKILL');
  }
}

/** Returns what kept the pieces from coming; a program that takes no more says itself why. */
async function feed(input: Writable, packed: AsyncIterable<Buffer>): Promise<Error | undefined> {
  let hungUp: Error | undefined;
  input.on('error', (error) => (hungUp = error));
  try {
    for await (const piece of packed) {
      if (hungUp !== undefined) return undefined;
      // Its memory is lent until the next one is asked for.
      await new Promise<void>((resolve) => input.write(piece, () => resolve()));
    }
    return undefined;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  } finally {
    input.end();
  }
}

function notStarted(cause: unknown): ImageError {
  const code = errnoOf(cause);
  if (code !== 'ENOENT') return startError('xz', '/', { code, cause });
  return new ImageError('command-not-found', 'the command "xz" is not installed; install xz-utils', {
    cause,
  });
}
