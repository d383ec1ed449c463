/** Shows how far a job has come. */
export interface ProgressDisplay {
  /** In whole per cent. */
  update(percent: number): void;
  /** Leaves the terminal clean. */
  stop(): void;
}

/** Plain output says something at each of these steps, in per cent. */
const PLAIN_STEP = 5;

/** A bar on a terminal; elsewhere a line now and then, as a log wants it. */
export async function openProgressDisplay(
  title: string,
  stream: NodeJS.WriteStream,
): Promise<ProgressDisplay> {
  return stream.isTTY ? await openBar(title, stream) : openLines(title, stream);
}

async function openBar(title: string, stream: NodeJS.WriteStream): Promise<ProgressDisplay> {
  // Not at the top: the daemon does without, and starts the sooner.
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
