import type { Progress } from '@nodepool-builder/image-builder';
import { openProgressDisplay } from './progress-display.ts';

/** Shows on standard error how far a piece of work has come. */
export async function withProgress<T>(
  title: string,
  work: (onProgress: (progress: Progress) => void) => Promise<T>,
): Promise<T> {
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
}
