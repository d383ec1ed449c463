import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Checksums, ImageProvider } from '@nodepool-builder/image-builder';
import { checksumsOf, unlessMissing } from '@nodepool-builder/image-builder/internal';
import type { ChainLink, LocalFile } from '@nodepool-builder/provenance';
import { CommandError, errorLine, failing, usageError } from '../terms/command-error.ts';
import type { WithProgress } from './progress.ts';

/** A file of the image, with digests of its current contents. */
export interface HashedFile extends LocalFile, Checksums {
  readonly size: number;
}

/** How to get at the bytes of an image. */
export interface ByteSettings {
  readonly download?: true;
  readonly temporaryDirectory?: string;
  readonly withProgress: WithProgress;
  readonly signal: AbortSignal;
}

/** Computes the digests of files, one after the other. Missing files are skipped. */
export async function hashFiles(
  title: string,
  paths: readonly { readonly format: string; readonly path: string }[],
  withProgress: WithProgress,
  signal: AbortSignal,
): Promise<readonly HashedFile[]> {
  const present: { format: string; path: string; size: number }[] = [];
  for (const file of paths) {
    const state = await unlessMissing(stat(file.path));
    if (state?.isFile()) present.push({ ...file, size: state.size });
  }
  if (present.length === 0) return [];
  const total = present.reduce((sum, { size }) => sum + size, 0);
  return await withProgress(`digests of ${title}`, async (onProgress) => {
    const files: HashedFile[] = [];
    let before = 0;
    for (const file of present) {
      const checksums = await checksumsOf(file.path, {
        signal,
        onProgress: ({ done }) => onProgress({ done: before + done, total, size: total }),
      });
      before += file.size;
      files.push({ ...file, ...checksums });
    }
    return files;
  });
}

interface DownloadOutcome {
  readonly sha256?: string;
  readonly links: readonly ChainLink[];
}

/** Error codes of a download whose bytes differ from what the provider promises. */
const OTHER_BYTES: ReadonlySet<unknown> = new Set(['image-failed', 'image-changed', 'checksum-mismatch']);

/** Computes the digest of an image's bytes in a provider, if they are on this host or `--download` is given. */
export async function storedBytes(
  provider: ImageProvider,
  externalId: string,
  settings: ByteSettings,
): Promise<DownloadOutcome> {
  const { withProgress, signal } = settings;
  const path = provider.imagePath?.(externalId);
  if (path === undefined) {
    return settings.download ? await downloaded(provider, externalId, settings) : { links: [] };
  }
  const [file] = await hashFiles(externalId, [{ format: '', path }], withProgress, signal);
  if (file !== undefined) return { sha256: file.sha256, links: [] };
  throw new CommandError(`${path} was removed`, 'not-found');
}

/** Downloads an image to a temporary file, and computes its digest. */
async function downloaded(
  provider: ImageProvider,
  externalId: string,
  { temporaryDirectory = tmpdir(), withProgress, signal }: ByteSettings,
): Promise<DownloadOutcome> {
  const fetchImage = provider.download?.bind(provider);
  if (fetchImage === undefined) {
    throw usageError(`provider "${provider.name}" cannot download its images; omit --download`);
  }
  const unwritable = failing(`cannot write to ${temporaryDirectory}`, 'name another --temporary-directory');
  const directory = await mkdtemp(join(temporaryDirectory, 'nodepool-builder-verify-')).catch(unwritable);
  try {
    const path = join(directory, 'image');
    await withProgress(`download of ${externalId}`, (onProgress) =>
      fetchImage(externalId, path, { signal, onProgress }),
    );
    const [file] = await hashFiles(externalId, [{ format: '', path }], withProgress, signal);
    return { ...(file !== undefined && { sha256: file.sha256 }), links: [] };
  } catch (error) {
    if (!OTHER_BYTES.has(Object(error).code)) throw error;
    const subject = `image ${externalId}`;
    return { links: [{ kind: 'download', subject, state: 'refuted', reason: errorLine(error) }] };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
