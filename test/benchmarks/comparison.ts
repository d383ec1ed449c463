import type { BenchmarkContext, Measurement } from './benchmark.ts';
import { distributionOf } from './distribution.ts';

/** One of several programs that are measured in turns. */
export interface Contender<T = number> {
  readonly name: string;
  /** Takes one sample. */
  readonly sample: () => Promise<T>;
}

/** Samples of each contender by its name. Samples with the same index come from the same round. */
export type Samples<T = number> = ReadonlyMap<string, readonly T[]>;

/**
 * Measures the contenders in turns, so that other load on the machine affects all of them. Each round begins with a
 * different contender, because what one leaves behind, such as dirty pages, slows down the next one.
 *
 * @param rounds number of counted rounds; one more round warms up
 */
export async function compare<T>(
  contenders: readonly Contender<T>[],
  { signal, progress }: BenchmarkContext,
  rounds = 9,
): Promise<Samples<T>> {
  const samples = new Map(contenders.map(({ name }) => [name, [] as T[]]));
  for (const { sample } of contenders) await sample();
  for (let round = 1; round <= rounds; round += 1) {
    const first = round % contenders.length;
    for (const { name, sample } of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      signal.throwIfAborted();
      samples.get(name)?.push(await sample());
    }
    progress(`round ${round} of ${rounds}`);
  }
  return samples;
}

/** Selects one figure from samples with several. */
export function figureOf<T>(samples: Samples<T>, pick: (sample: T) => number): Samples {
  return new Map(Array.from(samples, ([name, own]) => [name, own.map(pick)]));
}

/** Formats figures of one kind. */
export interface Unit {
  readonly name: string;
  readonly digits: number;
}

/** Returns a row for each contender, with its ratio to the first one. */
export function rowsOf(what: string, unit: Unit, samples: Samples): Measurement[] {
  const [base = ''] = samples.keys();
  return Array.from(samples, ([name, own]) => {
    const { min, median, max } = distributionOf(own);
    const [low, middle, high] = [min, median, max].map((value) => formatNumber(value, unit.digits));
    const ratio = name === base ? '' : `, × ${formatRatio(ratioOf(samples, name, base).median)}`;
    return {
      what: `${what}: ${name}`,
      result: `${middle} ${unit.name} (${low}–${high})${ratio}`,
      figure: { group: `${what}, ${unit.name}`, label: name, value: median, min, max },
    };
  });
}

/** Ratio of one contender to another. `min` and `max` come from single rounds. */
export interface Ratio {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

/** Summarizes the ratios of the rounds. */
export function ratioOf(samples: Samples, one: string, other: string): Ratio {
  const base = samplesOf(samples, other);
  return distributionOf(samplesOf(samples, one).map((value, round) => value / (base[round] as number)));
}

/** Returns the row of a ratio with a minimum. */
export function ratioRow(
  what: string,
  ratio: Ratio,
  bar: { readonly atLeast: number } | { readonly atMost: number },
): Measurement {
  const [low, middle, high] = [ratio.min, ratio.median, ratio.max].map(formatRatio);
  const [limit, met] =
    'atLeast' in bar
      ? [`≥ × ${Number(bar.atLeast.toFixed(2))}`, ratio.median >= bar.atLeast]
      : [`≤ × ${bar.atMost}`, ratio.median <= bar.atMost];
  return { what: `**${what}**`, result: `× ${middle} (${low}–${high})`, bar: { limit, met } };
}

/** Returns the contender with the greatest median. */
export function bestOf(samples: Samples, names: readonly string[]): string {
  const medianOf = (name: string): number => distributionOf(samplesOf(samples, name)).median;
  return names.reduce((best, name) => (medianOf(name) > medianOf(best) ? name : best));
}

export function formatNumber(value: number, digits: number): string {
  return value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

function formatRatio(ratio: number): string {
  return ratio < 0.1 ? ratio.toPrecision(1) : ratio.toFixed(2);
}

function samplesOf(samples: Samples, name: string): readonly number[] {
  const own = samples.get(name);
  if (own === undefined) throw new Error(`"${name}" was not measured`);
  return own;
}
