import { createRequire } from 'node:module';
import { Socket } from 'node:net';
import { join } from 'node:path';

/** Directory of the other libraries, apart from the project's own packages. */
export const PEERS: string = join(import.meta.dirname, '../peers');

/** Loads a module of the other libraries, which have no types. */
export const requirePeer: NodeJS.Require = createRequire(join(PEERS, 'package.json'));

/**
 * Disables Nagle's algorithm for every socket of this process. Most of the libraries leave it enabled, and then handle
 * only 23 jobs per second, because each job waits for a delayed acknowledgement.
 */
export function withoutNagle(): void {
  const original = Object.getOwnPropertyDescriptor(Socket.prototype, 'connect') as PropertyDescriptor;
  const connect = function (this: Socket, ...args: unknown[]): Socket {
    this.setNoDelay(true);
    return original.value.apply(this, args);
  };
  Object.defineProperty(Socket.prototype, 'connect', { ...original, value: connect });
}
