import { mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger, UploadRequest } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { GceDouble, type GceDoubleOptions } from '../../../test/doubles/gce/gce-double.ts';
import { GceProvider, type GceProviderOptions } from '../src/gce-provider.ts';
import { GCE_SETTINGS, type GceEntry } from '../src/gce-settings.ts';

export const SECRET = 'token-of-this-host';

/** A double, and everything that its providers need. */
export interface GceFixture {
  readonly double: GceDouble;
  readonly directory: string;
  readonly lines: string[];
  readonly entry: (settings?: Partial<GceEntry>) => GceEntry;
  /** Opens a provider, like a process with this `images-dir`. */
  readonly open: (
    settings?: Partial<GceEntry>,
    session?: Partial<GceProviderOptions['session']>,
  ) => GceProvider;
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
    open: (settings, session) => {
      const provider = new GceProvider({
        entry: entryOf(settings),
        formats: ['raw'],
        directory: join(directory, 'records'),
        session: {
          project: 'ci-project',
          credentialsFile,
          endpoint: double.endpoint,
          storageEndpoint: double.endpoint,
          ...session,
        },
        interval: 0.02,
        logger,
      });
      t.after(() => provider.close());
      return provider;
    },
  };
}

const MIB = 2 ** 20;

/** Returns an upload request for a small disk. */
export async function requestFor(
  { directory }: GceFixture,
  more: Partial<UploadRequest> = {},
): Promise<UploadRequest> {
  const path = join(directory, 'disk.raw');
  const file = await open(path, 'w');
  await file.truncate(4 * MIB);
  await file.write(Buffer.alloc(MIB, 'some data'));
  await file.close();
  return {
    uploadId: '0000000012',
    imageId: 'debian-0000000001',
    imageName: 'debian',
    file: { format: 'raw', path, size: 4 * MIB },
    ...more,
  };
}

/** Returns an entry of `providers` with default settings. */
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
