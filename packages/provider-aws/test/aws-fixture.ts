import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { Logger } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/module-kit';
import { AwsProvider } from '../src/aws-provider.ts';
import { AWS_SETTINGS, type AwsEntry } from '../src/aws-settings.ts';
import { AwsDouble, type AwsDoubleOptions } from '../src/testing/index.ts';

export const SECRET = 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY';

/** A double, and what providers on it need. */
export interface AwsFixture {
  readonly double: AwsDouble;
  readonly directory: string;
  /** Lines of all loggers. */
  readonly lines: string[];
  /** Opens a provider, as a process with this `images-dir` does. */
  readonly open: (settings?: Partial<AwsEntry>) => AwsProvider;
}

export async function awsFixture(
  t: TestContext,
  options: Partial<AwsDoubleOptions> = {},
): Promise<AwsFixture> {
  const double = await AwsDouble.start(options);
  t.after(() => double[Symbol.asyncDispose]());
  const directory = await mkdtemp(join(tmpdir(), 'aws-'));
  t.after(() => rm(directory, { recursive: true }));
  const credentialsFile = join(directory, 'credentials');
  await writeFile(
    credentialsFile,
    `[default]\naws_access_key_id = AKIDEXAMPLE\naws_secret_access_key = ${SECRET}\n`,
  );
  const lines: string[] = [];
  const log = (message: string): void => void lines.push(message);
  const logger: Logger = { debug: log, info: log, warn: log, error: log };
  return {
    double,
    directory,
    lines,
    open: (settings = {}) => {
      const entry: AwsEntry = {
        ...readSettings(AWS_SETTINGS, {}, (path) => path),
        name: 'ci',
        images: [],
        ...settings,
      };
      const provider = new AwsProvider({
        entry,
        formats: ['raw'],
        directory: join(directory, 'records'),
        session: {
          region: 'us-east-1',
          credentialsFile,
          endpoint: double.endpoint,
          s3Endpoint: settings['s3-endpoint'],
          concurrency: 8,
          attempts: 3,
        },
        interval: 0.02,
        logger,
      });
      t.after(() => provider.close());
      return provider;
    },
  };
}
