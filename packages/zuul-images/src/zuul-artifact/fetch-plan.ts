import { FORMAT_NAMES, type ImageFormat } from '@nodepool-builder/image-builder';
import { conversionSource, isConvertible } from '@nodepool-builder/image-builder/internal';

/** Cost of a conversion, relative to fetching its source, because disks are faster than networks. */
const CONVERSION = 1 / 4;

/** A format that can be fetched. */
export interface OfferedFormat {
  readonly format: ImageFormat;
  /** Bytes to fetch, if known. */
  readonly toFetch?: number | undefined;
  /** Bytes that a conversion reads. Default: the bytes to fetch. */
  readonly size?: number;
}

/** A step towards the needed formats. */
export interface FetchStep {
  /** Source of a conversion; absent if the format is fetched. */
  readonly from?: ImageFormat;
  readonly format: ImageFormat;
  /** Relative cost, for progress. */
  readonly cost: number;
}

/**
 * Plans the cheapest way to all needed formats; undefined if there is none.
 *
 * The cost is counted in bytes: those to fetch, and a quarter of the size of its source for each conversion. An unknown
 * size counts as the largest known one. Between two equal ways, the order of `IMAGE_FORMATS` decides: qcow2 before raw.
 */
export function planFetch(
  needed: readonly ImageFormat[],
  offers: readonly OfferedFormat[],
): readonly FetchStep[] | undefined {
  const largest = Math.max(1, ...offers.map(({ toFetch = 0 }) => toFetch));
  const inOrder = FORMAT_NAMES.flatMap((name) => offers.find(({ format }) => format === name) ?? []);
  const plans = selections(inOrder)
    .map((selection) => stepsOf(needed, selection, largest))
    .filter((steps) => steps !== undefined);
  return plans.toSorted((a, b) => costOf(a) - costOf(b))[0];
}

/** Returns the sum of the costs. */
export function costOf(steps: readonly FetchStep[]): number {
  return steps.reduce((sum, { cost }) => sum + cost, 0);
}

function stepsOf(
  needed: readonly ImageFormat[],
  selection: readonly OfferedFormat[],
  largest: number,
): readonly FetchStep[] | undefined {
  const source = conversionSource(selection);
  const missing = needed.filter((format) => !selection.some((offer) => offer.format === format));
  if (!missing.every(isConvertible)) return undefined;
  const fetches = selection.map(({ format, toFetch = largest }) => ({ format, cost: toFetch }));
  if (missing.length === 0) return fetches;
  if (source === undefined) return undefined;
  const { format: from, toFetch = largest, size = toFetch } = source;
  return [...fetches, ...missing.map((format) => ({ from, format, cost: size * CONVERSION }))];
}

/** Returns all selections of some of the items, starting with those that contain the first item. */
function selections<T>([first, ...others]: readonly T[]): readonly (readonly T[])[] {
  if (first === undefined) return [];
  const rest = selections(others);
  return [[first], ...rest.map((selection) => [first, ...selection]), ...rest];
}
