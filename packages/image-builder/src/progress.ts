import type { Progress } from './types.ts';

type Listener = (progress: Progress) => void;

/** Minimum time between two calls, in milliseconds. */
const INTERVAL = 200;

/**
 * Reports progress in whole percent, always increasing and at most five times a second, and each change of `waiting`
 * and `phase`.
 */
export function steadyProgress(listener: Listener): Listener {
  let last = 0;
  let nextAt = 0;
  let wasWaiting: string | undefined;
  let lastPhase: string | undefined;
  return ({ done, total, ...state }) => {
    const { waiting, phase } = state;
    const percent = total > 0 ? Math.min(100, Math.floor((done / total) * 100)) : 0;
    const now = performance.now();
    const isLater = percent > last && (now >= nextAt || percent === 100);
    if (!isLater && waiting === wasWaiting && phase === lastPhase) return;
    last = Math.max(last, percent);
    [wasWaiting, lastPhase] = [waiting, phase];
    nextAt = now + INTERVAL;
    listener({ ...state, done: last, total: 100 });
  };
}

/** Maps the progress of a step to a range of percent of the whole operation. */
export function portion(listener: Listener, from: number, to: number): Listener {
  return ({ done, total, ...state }) => {
    listener({ ...state, done: from + (total > 0 ? (to - from) * (done / total) : 0), total: 100 });
  };
}
