import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { conversionSource, isConvertible } from '@nodepool-builder/image-builder/module-kit';

/** What a conversion costs, as a part of what it would cost to fetch its source: disks are faster than networks. */
const CONVERSION = 1 / 4;

/** A format that can be had from elsewhere. */
export interface OfferedFormat {
  readonly format: ImageFormat;
  /** Bytes that have to be fetched; unknown where nobody tells. */
  readonly toFetch?: number;
  /** Bytes that a conversion begins with; default what has to be fetched. */
  readonly size?: number;
}

/** One step on the way to all that is wanted. */
export interface FetchStep {
  /** Absent where the format is fetched. */
  readonly from?: ImageFormat;
  readonly format: ImageFormat;
  /** Of no unit; for progress. */
  readonly cost: number;
}

/**
 * How to get to all formats that are wanted with the least work; undefined if that cannot be.
 *
 * The work is counted in bytes: those to fetch, and a quarter of the size of its source for each conversion. An unknown
 * size is taken for the largest of those that are known. Where two ways are equal, the order of `IMAGE_FORMATS` decides:
 * qcow2 before raw.
 */
export function planFetch(
  wanted: readonly ImageFormat[],
  offers: readonly OfferedFormat[],
): readonly FetchStep[] | undefined {
  const largest = Math.max(1, ...offers.map(({ toFetch = 0 }) => toFetch));
  const inOrder = FORMAT_NAMES.flatMap((name) => offers.find(({ format }) => format === name) ?? []);
  const plans = selections(inOrder)
    .map((selection) => stepsOf(wanted, selection, largest))
    .filter((steps) => steps !== undefined);
  return plans.toSorted((a, b) => costOf(a) - costOf(b))[0];
}

/** What the steps cost together. */
export function costOf(steps: readonly FetchStep[]): number {
  return steps.reduce((sum, { cost }) => sum + cost, 0);
}

function stepsOf(
  wanted: readonly ImageFormat[],
  selection: readonly OfferedFormat[],
  largest: number,
): readonly FetchStep[] | undefined {
  const source = conversionSource(selection);
  const { toFetch = largest, size = toFetch } = source ?? {};
  const missing = wanted.filter((format) => !selection.some((offer) => offer.format === format));
  if (missing.length > 0 && source === undefined) return undefined;
  if (!missing.every(isConvertible)) return undefined;
  const fetches = selection.map((offer) => ({ format: offer.format, cost: offer.toFetch ?? largest }));
  const conversions = missing.flatMap((format) =>
    source === undefined ? [] : [{ from: source.format, format, cost: size * CONVERSION }],
  );
  return [...fetches, ...conversions];
}

/** All selections of some of the items, those with the first item first. */
function selections<T>([first, ...others]: readonly T[]): readonly (readonly T[])[] {
  if (first === undefined) return [];
  const rest = selections(others);
  return [[first], ...rest.map((selection) => [first, ...selection]), ...rest];
}
