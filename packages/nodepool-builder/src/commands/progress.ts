import { setTimeout as delay } from 'node:timers/promises';
import type { Client, ServerAddress } from '@nodepool-builder/gearman-node';
import { SingleBar } from 'cli-progress';
import { type MeteredProgress, ProgressMeter } from '../daemon/jobs/progress-meter.ts';
import type { Reading } from '../protocol/running-job.ts';
import { findRunningJob } from '../site/builder-status.ts';
import { progressText, waitRateAndTimeLeft } from '../site/progress-text.ts';
import { warn } from '../terms/command-error.ts';
import { printable } from '../terms/printable.ts';
import type { Column } from './table.ts';

/**
 * Runs a task and shows its progress. The task reports its own progress, the measurements of a builder, or both. It may
 * print lines next to the progress.
 */
export type WithProgress = <T>(
  title: string,
  task: (
    onProgress: (progress: MeteredProgress) => void,
    onReading: (reading: Reading) => void,
    note: (line: string) => void,
  ) => Promise<T>,
) => Promise<T>;

/** Time between two lines of a log, and between two states of a bar, in milliseconds. */
const LINE_INTERVAL = 60_000;
const BAR_INTERVAL = 1000;

/**
 * Shows progress on standard error, with its rate and the time left: a bar on a terminal, which changes every second,
 * else lines for a log, at least one a minute.
 */
export const withProgress: WithProgress = async (title, task) => {
  const meter = new ProgressMeter();
  let measured: Reading | undefined;
  const read = (): Reading => {
    const reading = measured?.waiting === undefined ? meter.read() : { percent: 0 };
    return { ...reading, ...measured, percent: measured?.percent || reading.percent };
  };
  const display = process.stderr.isTTY ? openBar(title) : openLines(title);
  const timer = setInterval(() => display.show(read()), BAR_INTERVAL);
  try {
    display.show(read());
    const onProgress = (progress: MeteredProgress): void => {
      if (progress.total <= 0) return;
      meter.update(progress);
      display.show(read());
    };
    const onReading = (reading: Reading): void => {
      measured = reading;
    };
    const result = await task(onProgress, onReading, display.note);
    display.show({ percent: 100 });
    return result;
  } finally {
    clearInterval(timer);
    display.stop();
  }
};

/** Shows nothing, for JSON output. */
export const withoutProgress: WithProgress = (_title, task) =>
  task(
    () => {},
    () => {},
    warn,
  );

/** Width of a terminal that does not report one, in columns. */
const WIDTH = 100;

/** Width of the figures next to a bar, in columns: ` 100 % | 10:00:00, 1023.9 MiB/s, 59 min 59 s left`. */
const MAX_FIGURES_LENGTH = 50;

interface ProgressDisplay {
  readonly show: (reading: Reading) => void;
  readonly note: (line: string) => void;
  /** Removes the bar from the terminal. */
  readonly stop: () => void;
}

function openBar(title: string): ProgressDisplay {
  const bar = new SingleBar({
    stream: process.stderr,
    format: `${printable(title)} {bar} {percentage} % | {elapsed}{more}`,
    barsize: Math.max(5, Math.min(30, (process.stderr.columns || WIDTH) - title.length - MAX_FIGURES_LENGTH)),
    hideCursor: true,
    linewrap: false,
  });
  const started = performance.now();
  const payload = (reading: Reading) => ({
    elapsed: clock(performance.now() - started),
    more: printable(waitRateAndTimeLeft(reading)),
  });
  bar.start(100, 0, payload({ percent: 0 }));
  return {
    show: (reading) => bar.update(reading.percent, payload(reading)),
    note: noteAboveBar,
    stop: () => bar.stop(),
  };
}

/** Prints a line above the bar. The bar has turned line wrapping off. */
function noteAboveBar(line: string): void {
  process.stderr.write(`\r\x1b[K\x1b[?7h${printable(line)}\n\x1b[?7l`);
}

/** Prints a line for each 5 %, for each minute, and for each change of the phase or the wait. */
function openLines(title: string): ProgressDisplay {
  let next = 0;
  let last = Number.NEGATIVE_INFINITY;
  let state: string | undefined;
  const show = (reading: Reading): void => {
    const { percent, phase, waiting, retrying } = reading;
    const now = performance.now();
    const isSame = state === (waiting ?? retrying ?? phase);
    if (percent < next && now - last < LINE_INTERVAL && isSame) return;
    state = waiting ?? retrying ?? phase;
    next = percent < 100 ? Math.min(percent + 5, 100) : Number.POSITIVE_INFINITY;
    last = now;
    console.error(`${title}: ${progressText(reading)}`);
  };
  return { show, note: (line) => console.error(line), stop: () => {} };
}

/** Formats a duration in milliseconds as `1:05:09`. */
function clock(milliseconds: number): string {
  const seconds = Math.floor(milliseconds / 1000);
  const [hours, ...rest] = [seconds / 3600, (seconds / 60) % 60, seconds % 60].map((value) =>
    String(Math.floor(value)),
  );
  return [hours, ...rest.map((value) => value.padStart(2, '0'))].join(':');
}

/** Pause between two queries to the builders, in milliseconds. */
const POLL_INTERVAL = 5000;

/** Time until the first query. Most jobs have started by then. */
const FIRST_POLL = 1000;

/**
 * Queries the job server and the builders for the progress of a job until the signal aborts. Without a reply, the
 * status of the Gearman job counts.
 *
 * @param name function of the job
 */
export async function pollProgress(
  {
    servers,
    name,
    client,
  }: { servers: readonly ServerAddress[]; name: string; client: Pick<Client, 'status'> },
  accepted: Promise<string>,
  onReading: (reading: Reading) => void,
  signal: AbortSignal,
): Promise<void> {
  const handle = await accepted.catch(() => undefined);
  if (handle === undefined) return;
  for (let pause = FIRST_POLL; ; pause = POLL_INTERVAL) {
    await delay(pause, undefined, { signal }).catch(() => {});
    if (signal.aborted) return;
    const status = await client.status(handle).catch(() => undefined);
    if (status?.known && !status.running) onReading({ percent: 0, waiting: 'a free builder' });
    else onReading((await findRunningJob(servers, name, handle, signal)) ?? { percent: 0 });
  }
}

/** Column with the progress of running work: `35 %, 12.3 MiB/s, 3 min left on west1`. */
export const PROGRESS_COLUMN: Column = {
  heading: 'PROGRESS',
  key: 'state',
  sparse: true,
  long: 'id',
  format: (_, { host, ...reading }) => {
    const { retrying, ...work } = reading;
    const text = progressText(work);
    const retry = waitRateAndTimeLeft({ retrying, 'retry-at': work['retry-at'] });
    return typeof host === 'string' ? `${text} on ${host}${retry}` : text || '-';
  },
};
