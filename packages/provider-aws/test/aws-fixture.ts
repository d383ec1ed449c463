import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { AwsDouble } from '../../../test/doubles/aws/aws-double.ts';
import type { AwsDoubleOptions } from '../../../test/doubles/aws/region.ts';
import { AwsProvider } from '../src/aws-provider.ts';
import type { SessionOptions } from '../src/aws-session.ts';
import { AWS_SETTINGS, type AwsEntry } from '../src/aws-settings.ts';

export const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';

/** A double, and everything that its providers need. */
export interface AwsFixture {
  readonly double: AwsDouble;
  readonly directory: string;
  /** Lines of all loggers. */
  readonly lines: string[];
  readonly logger: Logger;
  readonly session: Omit<SessionOptions, 'name'>;
  /** Opens a provider, like a process with this `images-dir`. */
  readonly open: (settings?: Partial<AwsEntry>, session?: Partial<SessionOptions>) => AwsProvider;
}

interface FixtureOptions extends Partial<AwsDoubleOptions> {
  /** Credentials. Default: fixed ones, because the double accepts all. */
  readonly credentials?: { readonly accessKeyId: string; readonly secretAccessKey: string };
}

export async function awsFixture(
  t: TestContext,
  { credentials, ...options }: FixtureOptions = {},
): Promise<AwsFixture> {
  const { accessKeyId = 'AKIDEXAMPLE', secretAccessKey = SECRET } = credentials ?? {};
  const double = await AwsDouble.start(options);
  t.after(() => double[Symbol.asyncDispose]());
  const directory = await mkdtemp(join(tmpdir(), 'aws-'));
  t.after(() => rm(directory, { recursive: true }));
  const credentialsFile = join(directory, 'credentials');
  await writeFile(
    credentialsFile,
    `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`,
  );
  const lines: string[] = [];
  const log = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  const session = {
    region: 'us-east-1',
    credentialsFile,
    endpoint: double.endpoint,
    concurrency: 8,
    attempts: 3,
  };
  return {
    double,
    directory,
    lines,
    logger,
    session,
    open: (settings = {}, more = {}) => {
      const provider = new AwsProvider({
        entry: entryOf(settings),
        formats: ['raw'],
        directory: join(directory, 'records'),
        session: { ...session, ...more, s3Endpoint: settings['s3-endpoint'] },
        interval: 0.02,
        logger,
      });
      t.after(() => provider.close());
      return provider;
    },
  };
}

/** Returns an entry of `providers` with default settings. */
export function entryOf(settings: Partial<AwsEntry>): AwsEntry {
  const defaults = readSettings(AWS_SETTINGS, {}, (path) => path);
  return { ...defaults, name: 'ci', images: [], ...settings };
}
