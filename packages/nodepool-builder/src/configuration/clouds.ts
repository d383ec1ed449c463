import type { ProviderCloud } from './configuration.ts';
import type { ProviderSource } from './source.ts';

/** Where clouds.yaml and the variables `OS_*` are looked for. */
export interface CloudPlace {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
}

/** The cloud that a provider names; undefined for a provider that is none. */
export function findCloud(
  _provider: ProviderSource,
  _place: CloudPlace,
  _warn: (message: string) => void,
): Promise<ProviderCloud | undefined> {
  return Promise.resolve(undefined);
}
