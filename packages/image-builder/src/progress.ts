import type { Progress } from './types.ts';

type Listener = (progress: Progress) => void;

/** Minimum time between two calls, in milliseconds. */
const INTERVAL = 200;

/**
 * Reports progress at most five times a second. The end, a return to an earlier position (when a transfer starts
 * again), and each change of `waiting` and `phase` are reported at once.
 */
export function steadyProgress(listener: (progress: Progress) => void): (progress: Progress) => void {
  let last: Progress = { done: 0, total: 1 };
  let nextAt = 0;
  return ({ done, total, ...state }) => {
    const progress = { ...state, done: total > 0 ? Math.min(done, total) : 0, total };
    const [part, lastPart] = [partDone(progress), partDone(last)];
    const now = performance.now();
    const isMoved = part < lastPart || (part > lastPart && (now >= nextAt || part === 1));
    if (!isMoved && state.waiting === last.waiting && state.phase === last.phase) return;
    last = progress;
    nextAt = now + INTERVAL;
    listener(progress);
  };
}

/** Returns the part of the operation that is done, from 0 to 1. */
export function partDone({ done, total }: Progress): number {
  return total > 0 ? Math.min(1, done / total) : 0;
}

/** Maps the progress of a step to a range of percent of the whole operation. */
export function portion(listener: Listener, from: number, to: number): Listener {
  return ({ done, total, ...state }) => {
    listener({ ...state, done: from + (to - from) * partDone({ done, total }), total: 100 });
  };
}
