import type { Material } from '@nodepool-builder/image-builder';
import type { BuildFacts } from '@nodepool-builder/provenance';
import { parametersOf } from '../attestation/site-attestation.ts';
import { isSameMasked } from './masked-values.ts';
import type { RebuiltImage } from './rebuild-report.ts';
import type { RecordedDiskImage } from './recorded-inputs.ts';

/** Inputs of a second build. */
export interface UsedInputs {
  readonly diskimage: RecordedDiskImage;
  readonly materials: readonly Material[];
  /** Variables of the disk image, without secrets. */
  readonly environment: Readonly<Record<string, string>>;
  /** Variables that restore inputs. */
  readonly restored: ReadonlySet<string>;
  /** Reasons why materials could not be restored, by their names. */
  readonly reasons: ReadonlyMap<string, string>;
}

/** Inputs of the second build that differ from the recorded ones. */
export function changedInputs(
  recorded: BuildFacts,
  { diskimage, materials, environment, restored, reasons }: UsedInputs,
): RebuiltImage['inputs'] {
  const { 'image-id': _, diskimage: __, formats: ___, ...parameters } = recorded.parameters;
  const all = { ...parametersOf(diskimage), environment };
  // Statements of earlier releases lack some of these; the digest tells whether they differ.
  const known =
    parameters.options === undefined
      ? ['configuration-digest', 'builder', 'settings', 'environment']
      : Object.keys(all);
  const used = Object.fromEntries(Object.entries(all).filter(([name]) => known.includes(name)));
  return [
    ...differing(flattened(parameters, restored), flattened(used, restored)),
    ...changedMaterials(recorded.materials, materials, reasons),
  ];
}

/** Values by name; those of mappings one by one, as `settings.elements`. */
function flattened(
  parameters: Readonly<Record<string, unknown>>,
  restored: ReadonlySet<string>,
): Readonly<Record<string, unknown>> {
  const entries = Object.entries(parameters).flatMap(([name, value]) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [[name, value] as const];
    return Object.entries(value).map(([key, one]) => [`${name}.${key}`, one] as const);
  });
  // These have the recorded values, and something in front or in place of them.
  return Object.fromEntries(entries.filter(([name]) => !restored.has(name.replace(/^environment\./, ''))));
}

/** Materials that differ in address or digest, and modified ones whose content was too large for a digest. */
function changedMaterials(
  recorded: readonly Material[],
  now: readonly Material[],
  reasons: ReadonlyMap<string, string>,
): RebuiltImage['inputs'] {
  const [before, after] = [byName(recorded), byName(now)];
  const unknown = recorded
    .filter(
      ({ digest, annotations }) =>
        annotations?.isModified === true &&
        digest.gitCommit !== undefined &&
        Object.keys(digest).length === 1,
    )
    .map(({ name }) => name);
  const changed = differing(before, after);
  const others = unknown
    .filter((name) => changed.every((one) => one.name !== name))
    .map((name) => ({ name, recorded: shown(before[name]), now: shown(after[name]), reason: null }));
  return [...changed, ...others].map((one) => ({ ...one, reason: reasons.get(one.name) ?? null }));
}

/** Address and digests of materials, by their names. */
function byName(materials: readonly Material[]): Readonly<Record<string, unknown>> {
  return Object.fromEntries(
    materials.map(({ name, uri, digest }) => [name, [uri, ...Object.values(digest)].join(' ').trim()]),
  );
}

function differing(
  recorded: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): RebuiltImage['inputs'] {
  return [...new Set([...Object.keys(recorded), ...Object.keys(now)])]
    .filter((name) => !isSameMasked(recorded[name], now[name]))
    .map((name) => ({ name, recorded: shown(recorded[name]), now: shown(now[name]), reason: null }));
}

function shown(value: unknown): string | null {
  if (value === undefined || value === null) return null;
  return typeof value === 'string' ? value : JSON.stringify(value);
}
