import { Cron } from 'croner';
import type { ManagedDiskImage } from '../configuration.ts';

/** The cron expressions of disk images, each parsed once; what is none is there as an error. */
export function parseCrons(entries: readonly ManagedDiskImage[]): ReadonlyMap<string, Cron | Error> {
  const expressions = new Set(
    entries.map(({ rebuildCron }) => rebuildCron).filter((each) => each !== undefined),
  );
  return new Map([...expressions].map((expression) => [expression, parseCron(expression)]));
}

/** Why a text is no cron expression; undefined if it is one. */
export function cronFault(expression: string): string | undefined {
  const cron = parseCron(expression);
  return cron instanceof Error ? cron.message.replace(/^CronPattern: /, '') : undefined;
}

function parseCron(expression: string): Cron | Error {
  try {
    return new Cron(expression);
  } catch (cause) {
    return cause as Error;
  }
}
