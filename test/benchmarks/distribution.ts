/** Summary of a set of samples. */
export interface Distribution {
  readonly count: number;
  readonly min: number;
  readonly median: number;
  /** The 95th percentile. */
  readonly p95: number;
  readonly max: number;
}

/**
 * Summarizes samples by nearest rank, so that each figure is one of the samples.
 *
 * @throws RangeError if there are no samples
 */
export function distributionOf(samples: readonly number[]): Distribution {
  const sorted = samples.toSorted((one, other) => one - other);
  const rank = (share: number): number => {
    const sample = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
    if (sample === undefined) throw new RangeError('cannot summarize zero samples');
    return sample;
  };
  return { count: sorted.length, min: rank(0), median: rank(0.5), p95: rank(0.95), max: rank(1) };
}
