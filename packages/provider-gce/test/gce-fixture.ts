import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import { GceProvider } from '../src/gce-provider.ts';
import { GCE_SETTINGS, type GceEntry } from '../src/gce-settings.ts';
import { GceDouble, type GceDoubleOptions } from '../src/testing/index.ts';

export const SECRET = 'token-of-this-host';

/** A double, and what providers on it need. */
export interface GceFixture {
  readonly double: GceDouble;
  readonly directory: string;
  readonly lines: string[];
  readonly entry: (settings?: Partial<GceEntry>) => GceEntry;
  /** Opens a provider, as a process with this `images-dir` does. */
  readonly open: (settings?: Partial<GceEntry>) => GceProvider;
}

export async function gceFixture(
  t: TestContext,
  options: Partial<GceDoubleOptions> = {},
): Promise<GceFixture> {
  const double = await GceDouble.start(options);
  t.after(() => double[Symbol.asyncDispose]());
  const directory = await mkdtemp(join(tmpdir(), 'gce-'));
  t.after(() => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'subject'), SECRET);
  const credentialsFile = join(directory, 'credentials.json');
  await writeFile(credentialsFile, JSON.stringify(double.credentials(join(directory, 'subject'))));
  const lines: string[] = [];
  const log = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  return {
    double,
    directory,
    lines,
    entry: entryOf,
    open: (settings) => {
      const provider = new GceProvider({
        entry: entryOf(settings),
        formats: ['raw'],
        directory: join(directory, 'records'),
        session: {
          project: 'ci-project',
          credentialsFile,
          endpoint: double.endpoint,
          storageEndpoint: double.endpoint,
        },
        interval: 0.02,
        logger,
      });
      t.after(() => provider.close());
      return provider;
    },
  };
}

/** An entry of `providers` with default settings. */
function entryOf(settings: Partial<GceEntry> = {}): GceEntry {
  return {
    ...readSettings(GCE_SETTINGS, {}, (path) => path),
    name: 'ci',
    images: [],
    project: 'ci-project',
    'bucket-name': 'images',
    ...settings,
  };
}
