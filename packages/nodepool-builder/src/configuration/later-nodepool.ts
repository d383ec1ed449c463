import type { Diagnostic } from '@nodepool-builder/image-builder';
import { isMapping } from './yaml-document.ts';

/** Keys of a provider since nodepool 0.4, each with its replacement here, which may depend on the types. */
const PROVIDER_KEYS: Readonly<Record<string, (types: readonly string[]) => string>> = {
  driver: ([first, ...others]) =>
    `"type: ${first}" (${others.map((type) => `or ${type}`).join(', ')}) in place of "driver"`,
  diskimages: () => '"images: [{name: IMAGE, diskimage: IMAGE}]" in place of "diskimages"',
  pools: () => 'nothing in place of "pools"',
};

export const LATER_PROVIDER_KEYS: readonly string[] = Object.keys(PROVIDER_KEYS);

/**
 * Reports a file for a later nodepool, which controls its builders by ZooKeeper. It is an error if a provider lacks
 * `images`, which the nodepool of Gearman required; otherwise the file may serve both.
 *
 * @param types of providers, the default type first
 */
export function laterNodepoolDiagnostic(document: unknown, types: readonly string[]): Diagnostic | undefined {
  const { providers, labels } = isMapping(document) ? document : {};
  const signs = entriesOf(providers).flatMap(({ entry, index }) =>
    LATER_PROVIDER_KEYS.filter((key) => key in entry).map((key) => ({ key, entry, index })),
  );
  const [first] = signs;
  if (first === undefined) return laterLabelsDiagnostic(labels);
  const keys = LATER_PROVIDER_KEYS.filter((key) => signs.some((sign) => sign.key === key));
  return {
    pointer: `/providers/${first.index}/${first.key}`,
    severity: signs.some(({ entry }) => !('images' in entry)) ? 'error' : 'warning',
    reason:
      'is a key of nodepool 0.4 and later, which uses ZooKeeper: the file is written for such a release',
    remedy: `write ${keys.map((key) => PROVIDER_KEYS[key]?.(types)).join(', and ')}`,
  };
}

/** A builder reads no labels, but the nodepool beside it cannot use these. */
function laterLabelsDiagnostic(labels: unknown): Diagnostic | undefined {
  const label = entriesOf(labels).find(({ entry }) => !('image' in entry) && !('providers' in entry));
  if (label === undefined) return undefined;
  return {
    pointer: `/labels/${label.index}`,
    severity: 'warning',
    reason: 'has neither image nor providers, as in nodepool 0.4 and later, which uses ZooKeeper',
    remedy: 'it is ignored here; a nodepool that uses Gearman needs both',
  };
}

/** The mappings in a list, with their positions. */
function entriesOf(list: unknown): readonly { entry: Readonly<Record<string, unknown>>; index: number }[] {
  const entries: readonly unknown[] = Array.isArray(list) ? list : [];
  return entries.flatMap((entry, index) => (isMapping(entry) ? [{ entry, index }] : []));
}
