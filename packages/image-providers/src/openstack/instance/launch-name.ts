import { createHash, randomUUID } from 'node:crypto';

const DIGITS = 12;

/**
 * Begins the names of all that one builder makes in a cloud for one provider: key pairs, and descriptions of floating
 * IPs, have room for nothing else, and what several builders make in one project must be told apart.
 */
export function namePrefix(owner: string, provider: string): string {
  const whose = createHash('sha256')
    .update(JSON.stringify([owner, provider]))
    .digest('hex');
  return `nodepool-builder-${whose.slice(0, DIGITS)}-`;
}

/** A name for what is made for one instance. */
export function launchName(prefix: string): string {
  return `${prefix}${randomUUID()}`;
}
