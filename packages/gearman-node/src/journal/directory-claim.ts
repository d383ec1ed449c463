import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';

/**
 * Claims a directory for this process. The claim is a socket in Linux's abstract namespace, which goes with the
 * process by whichever death; elsewhere there is none, and no protection.
 *
 * @returns what to close to give the claim back; undefined if another process has it
 */
export async function claimDirectory(directory: string): Promise<Server | undefined> {
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
