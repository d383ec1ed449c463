import type { OfferedFunctions } from '../planning/step.ts';

const VERBS: Readonly<Record<string, keyof OfferedFunctions>> = {
  'image-build': 'builds',
  'image-upload': 'uploads',
  'image-delete': 'deletes',
};

/** Sorts function names of builders by what they do; others are left out. */
export function offeredFunctions(names: Iterable<string>): OfferedFunctions {
  const offered = { builds: new Set<string>(), uploads: new Set<string>(), deletes: new Set<string>() };
  for (const name of names) {
    const colon = name.indexOf(':');
    const kind = VERBS[name.slice(0, Math.max(colon, 0))];
    if (kind !== undefined) offered[kind].add(name.slice(colon + 1));
  }
  return offered;
}
