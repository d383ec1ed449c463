import { createHash, randomUUID } from 'node:crypto';

const DIGITS = 12;

/**
 * Prefix of the names of all that one owner makes in a cloud for one provider. Key pairs and descriptions of floating
 * IPs have room for nothing else, and several builders may share a project. Without a scope, it is also the prefix of
 * what has one.
 */
export function namePrefix(owner: string, provider: string, scope?: string): string {
  const whose = createHash('sha256')
    .update(JSON.stringify([owner, provider]))
    .digest('hex');
  return `nodepool-builder-${whose.slice(0, DIGITS)}-${scope === undefined ? '' : `${scope}-`}`;
}

/** A name for what is made for one instance. */
export function launchName(prefix: string): string {
  return `${prefix}${randomUUID()}`;
}
