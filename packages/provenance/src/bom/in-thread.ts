import { once } from 'node:events';
import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import { withTimeout } from '@nodepool-builder/image-builder/internal';
import type { BomWork } from './bom-thread.ts';

/** Program of the thread, with the extension of this file: `.ts` in the sources, `.js` when compiled. */
const PROGRAM = new URL(`./bom-thread${extname(import.meta.url)}`, import.meta.url);

/** Timeout of one task in seconds. */
const TIME_LIMIT = 60;

/**
 * Runs a task on a package list in a thread, because a large list would block the event loop. The size of a list limits
 * the memory. Resource limits of a thread would not, because V8 ends the process if `JSON.parse` exceeds them.
 *
 * @throws Error with the reason
 * @throws the signal's reason
 */
export async function inThread<Name extends keyof BomWork>(
  name: Name,
  input: Parameters<BomWork[Name]>[0],
  signal: AbortSignal,
): Promise<Awaited<ReturnType<BomWork[Name]>>> {
  signal.throwIfAborted();
  const thread = new Worker(PROGRAM, {
    name: 'bom',
    workerData: { name, input },
    // Other flags of this process, such as `--input-type`, would prevent the program from starting.
    execArgv: process.execArgv.filter((flag) => flag.startsWith('--conditions=')),
  });
  thread.on('error', () => {}); // after an abort, once() no longer listens
  try {
    return await withTimeout(
      TIME_LIMIT,
      signal,
      async (stop) => (await once(thread, 'message', { signal: stop }))[0] as never,
      () => new Error(`it takes longer than ${TIME_LIMIT} s`),
    );
  } finally {
    await thread.terminate();
  }
}
