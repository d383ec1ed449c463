import type { ChainReport, FoundAttestation, TrustedKey, VerifiedSubject } from './types.ts';

/** Seconds by which the clock of a builder may be ahead of that of this host. */
export const CLOCK_TOLERANCE = 300;

/** Walks the chain from a subject back to its build. */
export function verifyChain(
  subject: VerifiedSubject,
  attestations: readonly FoundAttestation[],
  keys: readonly TrustedKey[],
): ChainReport {
  throw new Error(`${subject.kind}: ${attestations.length}, ${keys.length}: not written yet`);
}
