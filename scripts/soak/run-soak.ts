import { delimiter } from 'node:path';
import { parseArgs } from 'node:util';

/** Interval of progress lines, in milliseconds. */
const INTERVAL = 5000;

/** Options of a soak. */
export interface SoakRun<K extends string> {
  /** Whole numbers, from `--<name> N`. */
  readonly numbers: Readonly<Record<K, number>>;
  /** Aborts when the user stops it. */
  readonly signal: AbortSignal;
}

/**
 * Runs a soak, which prints its figures and returns its faults. The exit code is 1 if it returns any.
 *
 * @param defaults its options, with their default values
 * @param allIsWell message if it returns no fault
 */
export async function runSoak<K extends string>(
  name: string,
  defaults: Readonly<Record<K, number>>,
  allIsWell: string,
  soak: (run: SoakRun<K>) => Promise<readonly string[]>,
): Promise<void> {
  // Debian has gearmand in /usr/sbin, which is only in root's PATH.
  process.env.PATH = [process.env.PATH, '/usr/sbin', '/sbin'].join(delimiter);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => interrupted.abort(new Error(`stopped by ${signal}`)));
  }
  try {
    const faults = await soak({ numbers: readNumbers(defaults), signal: interrupted.signal });
    for (const fault of faults) console.log(`  ${fault}`);
    console.log(faults.length === 0 ? allIsWell : `faults: ${faults.length}`);
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

function readNumbers<K extends string>(defaults: Readonly<Record<K, number>>): Readonly<Record<K, number>> {
  const entries = Object.entries(defaults) as [K, number][];
  const options = Object.fromEntries(
    entries.map(([key, value]) => [key, { type: 'string' as const, default: String(value) }]),
  );
  const { values } = parseArgs({ options });
  const numbers = entries.map(([key]) => {
    const text = String(values[key]);
    if (!/^[1-9]\d*$/.test(text)) throw new Error(`--${key} takes a whole number from 1 on, not "${text}"`);
    return [key, Number(text)];
  });
  return Object.fromEntries(numbers) as Record<K, number>;
}
