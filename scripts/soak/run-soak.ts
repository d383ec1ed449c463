import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';
import type { SoakProgress } from '../../test/soak/soak.ts';

/** Interval of progress lines, in milliseconds. */
const INTERVAL = 5000;

/** Options of a soak. */
export interface SoakRun<K extends string> {
  /** Integers, from `--<name> N`. */
  readonly numbers: Readonly<Record<K, number>>;
  /** Selected parts; all parts if the command line names none. */
  readonly parts: readonly string[];
  /** Aborts when the user stops the run. */
  readonly signal: AbortSignal;
}

/**
 * Runs a soak, which prints its figures and returns its errors. The exit code is 1 if it returns any.
 *
 * @param defaults options with their default values
 * @param allIsWell message if it returns no error
 * @param parts names that the command line may select. Default: none
 */
export async function runSoak<K extends string>(
  name: string,
  defaults: Readonly<Record<K, number>>,
  allIsWell: string,
  soak: (run: SoakRun<K>) => Promise<readonly string[]>,
  parts: readonly string[] = [],
): Promise<void> {
  // Debian has gearmand in /usr/sbin, which is only in root's PATH.
  process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
  }
  try {
    const faults = await soak({ ...readCommandLine(defaults, parts), signal: interrupted.signal });
    for (const fault of faults) console.log(`  ${fault}`);
    console.log(faults.length === 0 ? allIsWell : `errors: ${faults.length}`);
    if (faults.length > 0) process.exitCode = 1;
  } catch (error) {
    const reason: unknown = interrupted.signal.aborted ? interrupted.signal.reason : error;
    console.error(`${name}: ${reason instanceof Error ? reason.message : String(reason)}`);
    process.exitCode = 1;
  }
}

/** Prints progress a few times a minute. */
export function printNowAndThen<T>(describe: (progress: T) => string): (progress: T) => void {
  let last = performance.now();
  return (progress) => {
    if (performance.now() - last < INTERVAL) return;
    last = performance.now();
    console.log(`  ${describe(progress)}`);
  };
}

/** Formats a line about uploads and kills. */
export function describeUploads({ done, uploads, submitted, lost, failed, ...kills }: SoakProgress): string {
  return (
    `${done} of ${uploads} uploads in ${kills.seconds.toFixed(0)} s; builder killed ${kills.builderKills} times, ` +
    `gearmand ${kills.gearmandKills} times; ${submitted} jobs, ${lost} resubmitted after a lost server, ` +
    `${failed} resubmitted after a failure`
  );
}

function readCommandLine<K extends string>(
  defaults: Readonly<Record<K, number>>,
  parts: readonly string[],
): Pick<SoakRun<K>, 'numbers' | 'parts'> {
  const entries = Object.entries(defaults) as [K, number][];
  const options = Object.fromEntries(
    entries.map(([key, value]) => [key, { type: 'string' as const, default: String(value) }]),
  );
  const { values, positionals } = parseArgs({ options, allowPositionals: parts.length > 0 });
  const unknown = positionals.find((name) => !parts.includes(name));
  if (unknown !== undefined) throw new Error(`no part "${unknown}"; choose one of: ${parts.join(', ')}`);
  const numbers = entries.map(([key]) => {
    const text = String(values[key]);
    if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${key} takes a whole number from 1 on, not "${text}"`);
    return [key, Number(text)];
  });
  return {
    numbers: Object.fromEntries(numbers) as Record<K, number>,
    parts: positionals.length > 0 ? positionals : parts,
  };
}
