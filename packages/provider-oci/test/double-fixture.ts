import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { RegistryDouble, type RegistryDoubleOptions } from '../../../test/doubles/oci/registry-double.ts';
import type { OciProvider } from '../src/oci-provider.ts';
import type { OciEntry } from '../src/oci-settings.ts';
import { PASSWORD, USER } from './docker-registry.ts';
import { openProvider, writeAuthFile } from './oci-fixture.ts';

/** A registry double, and everything that its providers need. */
export interface DoubleFixture {
  readonly double: RegistryDouble;
  readonly directory: string;
  /** Additional settings of its provider. */
  readonly settings: Pick<OciEntry, 'repository' | 'endpoint' | 'auth-file'>;
  readonly open: (settings?: Partial<OciEntry>) => OciProvider;
}

export async function doubleFixture(
  t: TestContext,
  options: RegistryDoubleOptions = {},
): Promise<DoubleFixture> {
  const double = await RegistryDouble.start({ user: { name: USER, password: PASSWORD }, ...options });
  t.after(() => double[Symbol.asyncDispose]());
  const directory = await mkdtemp(join(tmpdir(), 'oci-'));
  t.after(() => rm(directory, { recursive: true }));
  const settings = {
    repository: `${double.host}/ci/images`,
    endpoint: double.endpoint,
    'auth-file': await writeAuthFile(directory, double.host),
  };
  return {
    double,
    directory,
    settings,
    open: (more = {}) => openProvider({ ...settings, ...more }, directory),
  };
}
