import { createHash } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import type { ImageFormat, UploadRequest } from '@nodepool-builder/image-builder';
import { imageData } from '../../image-builder/src/testing/image-data.ts';
import { type CloudSettings, OpenStackProvider, type OpenStackProviderOptions } from '../src/index.ts';
import { SILENT } from './fixtures/silent-logger.ts';

/** Creates a provider with short delays for one test. */
export function openProvider(
  t: TestContext,
  settings: CloudSettings,
  options: Partial<OpenStackProviderOptions> = {},
): OpenStackProvider {
  const provider = new OpenStackProvider({
    name: 'cloud',
    formats: ['qcow2'],
    settings: async () => settings,
    logger: SILENT,
    session: { retry: { firstDelay: 0.001, attempts: 3 } },
    retry: { attempts: 3, delay: 0.001 },
    ...options,
  });
  t.after(() => provider.close());
  return provider;
}

/** Options of an image file. */
export interface FileOptions {
  /** Size in bytes. Default: enough for several chunks. */
  readonly size?: number;
  readonly format?: ImageFormat;
  /** True if its digests are known, as for an image that was built here. Default true. */
  readonly built?: boolean;
}

/** Returns a request to upload an image file of random content, which is removed after the test. */
export async function uploadRequest(
  t: TestContext,
  { size = 3_000_000, format = 'qcow2', built = true }: FileOptions = {},
): Promise<UploadRequest> {
  const directory = await mkdtemp(join(tmpdir(), 'openstack-provider-'));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, `0001.${format}`);
  const data = imageData(format, size);
  await writeFile(path, data);
  const digest = (algorithm: string): string => createHash(algorithm).update(data).digest('hex');
  const checksums = { md5: digest('md5'), sha256: digest('sha256') };
  return {
    uploadId: 'u1',
    imageId: '0001',
    imageName: 'debian',
    externalName: 'template-debian',
    file: { format, path, size, ...(built && { checksums }) },
    metadata: { os: 'debian' },
  };
}
