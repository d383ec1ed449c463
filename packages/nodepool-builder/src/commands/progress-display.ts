import type { Progress } from '@nodepool-builder/image-builder';

/** Shows the progress of one task. */
export interface ProgressDisplay {
  /** In whole per cent. */
  update(percent: number): void;
  /** Leaves the terminal clean. */
  stop(): void;
}

/** Function that runs a task and passes it a callback for its progress. */
export type WithProgress = <T>(
  title: string,
  task: (onProgress: (progress: Progress) => void) => Promise<T>,
) => Promise<T>;

/** Plain output has a line for each step of this size, in per cent. */
const PLAIN_STEP = 5;

/** Opens a bar on a terminal; elsewhere prints lines, for a log. */
export async function openProgressDisplay(
  title: string,
  stream: NodeJS.WriteStream,
): Promise<ProgressDisplay> {
  return stream.isTTY ? await openBar(title, stream) : openLines(title, stream);
}

/** Shows a bar or lines on standard error. */
export const withProgress: WithProgress = async (title, task) => {
  const display = await openProgressDisplay(title, process.stderr);
  try {
    display.update(0);
    const result = await task(({ done, total }) => {
      if (total > 0) display.update(Math.floor((done * 100) / total));
    });
    display.update(100);
    return result;
  } finally {
    display.stop();
  }
};

/** Shows nothing: for JSON output. */
export const withoutProgress: WithProgress = (_title, task) => task(() => {});

/** Shows a bar on a terminal, and nothing elsewhere. */
export const withProgressBar: WithProgress = (title, task) =>
  (process.stderr.isTTY ? withProgress : withoutProgress)(title, task);

async function openBar(title: string, stream: NodeJS.WriteStream): Promise<ProgressDisplay> {
  // Imported on demand: the daemon starts faster without it.
  const { SingleBar } = await import('cli-progress');
  const bar = new SingleBar({
    stream,
    format: `${title} {bar} {percentage} % | {duration_formatted}`,
    barsize: 30,
    hideCursor: true,
    linewrap: false,
  });
  bar.start(100, 0);
  return { update: (percent) => bar.update(percent), stop: () => bar.stop() };
}

function openLines(title: string, stream: NodeJS.WriteStream): ProgressDisplay {
  let shown = -PLAIN_STEP;
  return {
    update: (percent) => {
      if (percent < shown + PLAIN_STEP && percent < 100) return;
      if (percent === shown) return;
      shown = percent;
      stream.write(`${title}: ${percent} %\n`);
    },
    stop: () => {},
  };
}
