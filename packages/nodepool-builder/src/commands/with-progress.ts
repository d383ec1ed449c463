import type { Progress } from '@nodepool-builder/image-builder';
import { openProgressDisplay } from './progress-display.ts';

/** Function that runs a piece of work and passes it a callback for its progress. */
export type WithProgress = <T>(
  title: string,
  work: (onProgress: (progress: Progress) => void) => Promise<T>,
) => Promise<T>;

/** Runs the work without a display: for JSON output, and for the log of a CI job. */
export const withoutProgress: WithProgress = (_title, work) => work(() => {});

/** Shows the progress of a piece of work on standard error if that is a terminal. */
export const withProgress: WithProgress = async (title, work) => {
  if (!process.stderr.isTTY) return await withoutProgress(title, work);
  const display = await openProgressDisplay(title, process.stderr);
  try {
    display.update(0);
    const result = await work(({ done, total }) => {
      if (total > 0) display.update(Math.floor((done * 100) / total));
    });
    display.update(100);
    return result;
  } finally {
    display.stop();
  }
};
