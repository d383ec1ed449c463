import { adminTarget } from './admin-target.ts';
import { clientTarget } from './client-target.ts';
import { decoderTarget } from './decoder-target.ts';
import type { FuzzTarget } from './fuzz.ts';
import { jobServerTarget } from './job-server-target.ts';
import { journalTarget } from './journal-target.ts';
import { workerTarget } from './worker-target.ts';

/** All targets with their shares of the packets. Targets with sockets need more time per packet. */
export const FUZZ_TARGETS: readonly (FuzzTarget & { readonly share: number })[] = [
  { ...decoderTarget, share: 0.695 },
  { ...jobServerTarget, share: 0.2 },
  { ...clientTarget, share: 0.065 },
  { ...workerTarget, share: 0.015 },
  { ...adminTarget, share: 0.02 },
  { ...journalTarget, share: 0.005 },
];
